"""The pages of the fixture contract on FastAPI, and the server around them."""

import argparse
import asyncio
import gzip
import socket
import uuid

import uvicorn
from fastapi import Depends, FastAPI, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse


# The header that tells callers apart, where an implementation can.
CALLER = "x-caller"


class Site:
    """What the pages share."""

    def __init__(self):
        self.runs = 0
        self.count = 0


async def whole(request: Request):
    """Reads a request to its end before its page counts a run: one that breaks off is none."""
    await request.body()


def pages(site):
    """An application with the pages that stand behind a layer."""
    app = FastAPI(openapi_url=None, dependencies=[Depends(whole)])

    @app.api_route("/echo", methods=["POST", "PATCH"])
    async def echo(request: Request):
        if request.method == "POST":
            site.runs += 1
        content_type = request.headers.get("content-type", "application/octet-stream")
        # Set by hand, since a media type would be given a charset.
        return Response(await request.body(), 201, headers={"content-type": content_type})

    @app.post("/status/{code}")
    async def status(code: str):
        if not code.isdecimal() or not 200 <= int(code) < 600:
            return text("the status is not between 200 and 599", 400)
        site.runs += 1
        code = int(code)
        return Response(status_code=code) if code in (204, 304) else text(f"status:{code}", code)

    @app.post("/slow")
    async def slow(ms: int = 0):
        site.runs += 1
        await asyncio.sleep(ms / 1000)
        response = text(f"slept:{ms}", 200)
        response.headers["x-run"] = str(uuid.uuid4())
        return response

    @app.post("/counter")
    async def counter(ms: int = 0):
        site.runs += 1
        site.count += 1
        count = site.count
        await asyncio.sleep(ms / 1000)
        return {"count": count}

    @app.get("/counter")
    async def runs():
        return {"count": site.runs, "read": str(uuid.uuid4())}

    add_bodies(app, site)
    return app


def add_bodies(app, site):
    """The pages that are about the shape of a response."""

    @app.post("/stream")
    async def stream(chunks: int = 3, interval_ms: int = 0, fail_after: int | None = None, ct: str = "text/plain"):
        site.runs += 1
        run = uuid.uuid4()

        async def data():
            for sent in range(chunks):
                if sent > 0:
                    await asyncio.sleep(interval_ms / 1000)
                if fail_after is not None and sent >= fail_after:
                    raise RuntimeError("the stream breaks off, as asked")
                yield f"data: {sent} of {run}\n\n".encode()

        return StreamingResponse(data(), headers={"content-type": ct})

    @app.post("/headers")
    async def headers():
        site.runs += 1
        response = JSONResponse({"run": str(uuid.uuid4())}, 201)
        for name, value in [
            ("set-cookie", "a=1; Path=/"),
            ("set-cookie", "b=2; Path=/"),
            ("link", '</orders/1>; rel="self"'),
            ("link", '</orders>; rel="up"'),
            ("x-multi", "one"),
            ("x-multi", "two"),
            ("location", "/orders/1"),
            ("etag", '"v1"'),
        ]:
            response.headers.append(name, value)
        return response

    @app.post("/large")
    async def large(bytes: int):
        site.runs += 1
        return Response(b"x" * bytes, 200, headers={"content-type": "application/octet-stream"})

    @app.post("/gzip")
    async def compressed():
        site.runs += 1
        body = gzip.compress(f"run {uuid.uuid4()}".encode())
        return Response(body, 200, headers={"content-type": "text/plain", "content-encoding": "gzip"})

    @app.post("/panic")
    async def panic():
        site.runs += 1
        raise RuntimeError("the panic page panics")


def text(content, status):
    return Response(content, status, headers={"content-type": "text/plain"})


def serve(guarded, site, deviations):
    """Serves `guarded`, and the one page outside the layer, on the port of the command line (`--port N`, 0 takes a free
    one); says where, and what is unlike the peer's defaults."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    listener = socket.create_server(("127.0.0.1", parser.parse_args().port), backlog=1024)
    for deviation in deviations:
        print(f"deviation: {deviation}")
    print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    server = uvicorn.Server(uvicorn.Config(beside_reset(guarded, site), log_level="critical", timeout_graceful_shutdown=1))
    server.run(sockets=[listener])


def beside_reset(guarded, site):
    async def app(scope, receive, send):
        if scope["type"] == "http" and scope["method"] == "POST" and scope["path"] == "/reset":
            site.runs = 0
            await Response(status_code=204)(scope, receive, send)
        else:
            await guarded(scope, receive, send)

    return app
