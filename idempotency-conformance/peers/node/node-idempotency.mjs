// @node-idempotency/core before the pages, with its memory adapter. The package leaves the middleware to its user; this
// one follows the package's own description: onRequest before the handler, onResponse with what the handler sends.

import { Idempotency, IdempotencyError, IdempotencyErrorCodes } from "@node-idempotency/core";
import { MemoryStorageAdapter } from "@node-idempotency/storage-adapter-memory";
import { application, inside, outside, serve, site } from "./pages.mjs";

/** The statuses its documentation gives for its errors. */
const STATUSES = {
  [IdempotencyErrorCodes.IDEMPOTENCY_KEY_MISSING]: 400,
  [IdempotencyErrorCodes.IDEMPOTENCY_KEY_LEN_EXEEDED]: 400,
  [IdempotencyErrorCodes.IDEMPOTENCY_FINGERPRINT_MISSMATCH]: 422,
  [IdempotencyErrorCodes.REQUEST_IN_PROGRESS]: 409,
};

const idempotency = new Idempotency(new MemoryStorageAdapter(), { enforceIdempotency: true, cacheTTLMS: 2000 });

async function guard(req, res, next) {
  if (req.method !== "POST" && req.method !== "PATCH") return next();
  const request = { method: req.method, headers: req.headers, path: req.url, body: req.body };
  let known;
  try {
    known = await idempotency.onRequest(request);
  } catch (error) {
    if (!(error instanceof IdempotencyError)) throw error;
    if (error.code === IdempotencyErrorCodes.REQUEST_IN_PROGRESS) res.set("Retry-After", "1");
    return res.status(STATUSES[error.code]).json({ code: error.code, message: error.message });
  }
  if (known) return replay(known, res);
  capture(request, res);
  return next();
}

function replay(known, res) {
  res.status(known.additional.status);
  if (known.additional.type) res.set("Content-Type", known.additional.type);
  res.set("Idempotent-Replayed", "true");
  return res.send(known.body);
}

function capture(request, res) {
  const send = res.send.bind(res);
  res.send = (body) => {
    // `send` calls itself once more for an object that it has turned into text.
    res.send = send;
    const result = send(body);
    const additional = { status: res.statusCode, type: res.get("Content-Type") };
    idempotency.onResponse(request, { body, additional }).catch((error) => console.error(error));
    return result;
  };
}

const app = application();
const shared = site();
outside(app, shared);
app.use(guard);
inside(app, shared);
serve(app, [
  "enforceIdempotency: true (default false), since the contract requires a key",
  "cacheTTLMS: 2000 (default 24 h), so that expiry can be seen",
  "the middleware around it is the fixture's, written after the package's description, for POST and PATCH; statuses, Retry-After: 1 and Idempotent-Replayed are those of the project's own plugins",
]);
