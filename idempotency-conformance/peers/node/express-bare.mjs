// The pages on Express with no layer: shows that what fails behind a layer does not fail for want of it.

import { application, inside, outside, serve, site } from "./pages.mjs";

const app = application();
const shared = site();
outside(app, shared);
inside(app, shared);
serve(app, []);
