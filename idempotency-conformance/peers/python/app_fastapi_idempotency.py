"""fastapi-idempotency before the pages, with the memory store that is its default."""

from datetime import timedelta

from fastapi_idempotency import IdempotencyMiddleware
from pages import Site, pages, serve

site = Site()
app = pages(site)
app.add_middleware(IdempotencyMiddleware, key_window=timedelta(seconds=2))
serve(
    app,
    site,
    [
        "key_window of 2 s (default 24 h), so that expiry can be seen",
        "it has no option that requires a key: a request without one is compared with the last ten seconds' requests",
        "a copy of a live run waits up to 15 s for its answer, as is its default",
    ],
)
