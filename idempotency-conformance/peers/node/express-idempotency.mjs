// express-idempotency before the pages, with its memory adapter.

import { getSharedIdempotencyService, idempotency } from "express-idempotency";
import { application, inside, outside, serve, site } from "./pages.mjs";

const app = application();
const shared = site();
outside(app, shared);
app.use(idempotency());
// It hands a request on even when it has answered it, and asks every handler to look.
inside(app, shared, (req) => getSharedIdempotencyService().isHit(req));
serve(app, [
  "none: idempotency() without options, with the memory adapter that is its default",
  "it has no option that requires a key, and none for how long a record answers: vectors that need either cannot pass or do not apply",
]);
