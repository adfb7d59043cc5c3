// The pages of the fixture contract on Express, and the server around them.

import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import express from "express";

/** The largest request body that is read, in bytes. */
const BODY_LIMIT = 16 * 1024 * 1024;

/** An application that has read each request's body into `req.body`, as bytes. */
export function application() {
  const app = express();
  app.disable("x-powered-by");
  app.use(express.raw({ type: () => true, limit: BODY_LIMIT }));
  return app;
}

/**
 * Adds the one page that stands outside a layer. It comes before the layer.
 */
export function outside(app, site) {
  app.post("/reset", (req, res) => {
    site.runs = 0;
    res.status(204).end();
  });
}

/** What the pages share. */
export function site() {
  return { runs: 0, count: 0 };
}

/**
 * Adds the pages behind a layer.
 *
 * `answered` tells whether the layer has answered a request that it hands on all the same.
 */
export function inside(app, site, answered = () => false) {
  const page = (run) => async (req, res) => {
    if (answered(req)) return;
    site.runs += 1;
    await run(req, res);
  };
  app.post("/echo", page(echo));
  app.patch("/echo", async (req, res) => {
    if (!answered(req)) await echo(req, res);
  });
  app.post("/status/:code", async (req, res) => {
    const code = Number(req.params.code);
    if (!Number.isInteger(code) || code < 200 || code > 599) {
      if (!answered(req)) res.status(400).type("text/plain").send("the status is not between 200 and 599");
      return;
    }
    await page(status)(req, res);
  });
  app.post("/slow", page(slow));
  app.post("/counter", page(counter(site)));
  app.get("/counter", (req, res) => {
    res.json({ count: site.runs, read: randomUUID() });
  });
  app.post("/stream", page(stream));
  app.post("/headers", page(headers));
  app.post("/large", page(large));
  app.post("/gzip", page(gzip));
  app.post("/panic", page(panic));
  // Express answers another method with 404 on its own.
  for (const path of ["/echo", "/status/:code", "/slow", "/counter", "/stream", "/headers", "/large", "/gzip", "/panic"]) {
    app.all(path, (req, res) => {
      if (!answered(req)) res.status(405).send();
    });
  }
}

/** Text as text and the rest as bytes, as an Express handler sends them. */
function sendAs(res, type, bytes) {
  res.type(type);
  res.send(type.startsWith("text/") ? bytes.toString("utf8") : bytes);
}

function echo(req, res) {
  res.status(201);
  const type = req.get("content-type") ?? "application/octet-stream";
  sendAs(res, type, Buffer.isBuffer(req.body) ? req.body : Buffer.alloc(0));
}

function status(req, res) {
  const code = Number(req.params.code);
  res.status(code);
  if (code === 204 || code === 304) res.send();
  else sendAs(res, "text/plain", Buffer.from(`status:${code}`));
}

async function slow(req, res) {
  const ms = Number(req.query.ms ?? 0);
  await sleep(ms);
  res.set("X-Run", randomUUID());
  sendAs(res, "text/plain", Buffer.from(`slept:${ms}`));
}

function counter(site) {
  return async (req, res) => {
    site.count += 1;
    const count = site.count;
    await sleep(Number(req.query.ms ?? 0));
    res.json({ count });
  };
}

async function stream(req, res) {
  const run = randomUUID();
  const chunks = Number(req.query.chunks ?? 3);
  const interval = Number(req.query.interval_ms ?? 0);
  const failAfter = req.query.fail_after === undefined ? Infinity : Number(req.query.fail_after);
  res.type(req.query.ct ?? "text/plain");
  for (let sent = 0; sent < chunks; sent += 1) {
    if (sent > 0) await sleep(interval);
    if (sent >= failAfter) {
      res.destroy();
      return;
    }
    await new Promise((written) => res.write(`data: ${sent} of ${run}\n\n`, written));
  }
  res.end();
}

function headers(req, res) {
  res.status(201);
  res.append("Set-Cookie", "a=1; Path=/").append("Set-Cookie", "b=2; Path=/");
  res.append("Link", '</orders/1>; rel="self"').append("Link", '</orders>; rel="up"');
  res.append("X-Multi", "one").append("X-Multi", "two");
  res.set("Location", "/orders/1").set("ETag", '"v1"');
  res.json({ run: randomUUID() });
}

function large(req, res) {
  sendAs(res, "application/octet-stream", Buffer.alloc(Number(req.query.bytes), "x"));
}

function gzip(req, res) {
  res.set("Content-Encoding", "gzip");
  res.type("text/plain").send(gzipSync(`run ${randomUUID()}`));
}

function panic() {
  throw new Error("the panic page panics");
}

/** Serves on the port of the command line (`--port N`, 0 takes a free one) and says where, and what is unlike the peer's defaults. */
export function serve(app, deviations) {
  const at = process.argv.indexOf("--port");
  const port = at < 0 ? 0 : Number(process.argv[at + 1]);
  // Node's own time limits would end a long case before the suite does.
  const server = app.listen(port, "127.0.0.1", (error) => {
    if (error) throw error;
    for (const deviation of deviations) console.log(`deviation: ${deviation}`);
    console.log(`listening on http://127.0.0.1:${server.address().port}`);
  });
  for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => process.exit(0));
}
