"""fastapi-idempotency before the pages, with the memory store that is its default."""

from datetime import timedelta

from fastapi_idempotency import IdempotencyMiddleware
from pages import CALLER, Site, pages, serve

site = Site()
app = pages(site)
app.add_middleware(
    IdempotencyMiddleware,
    key_window=timedelta(seconds=2),
    lease_seconds=1.0,
    heartbeat_seconds=0.3,
    max_request_body_bytes=1024 * 1024,
    scope=lambda request: request.headers[CALLER],
)
serve(
    app,
    site,
    [
        "key_window of 2 s (default 24 h), so that expiry can be seen",
        "lease_seconds=1.0 and heartbeat_seconds=0.3 (default 60 and 20), so that a lapsed claim can be seen",
        "max_request_body_bytes of 1 MiB (default 8 MiB), the limit that the contract knows",
        "scope by the header X-Caller (default: the client's address), so that callers can be told apart",
        "it has no option that requires a key: a request without one is compared with the last ten seconds' requests",
        "a copy of a live run waits up to 15 s for its answer, as is its default",
    ],
)
