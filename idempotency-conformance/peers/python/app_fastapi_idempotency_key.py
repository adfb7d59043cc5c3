"""fastapi-idempotency-key before the pages, with the memory backend that is its default."""

from fastapi_idempotency_key import IdempotencyMiddleware
from pages import Site, pages, serve

site = Site()
app = pages(site)
app.add_middleware(IdempotencyMiddleware, default_ttl=2, required=True)
serve(
    app,
    site,
    [
        "required=True (default False), since the contract requires a key",
        "default_ttl=2 (default 24 h), so that expiry can be seen; it is the lease of a live run as well",
    ],
)
