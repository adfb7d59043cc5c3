"""asgi-idempotency-header before the pages, with its memory backend."""

from idempotency_header_middleware import IdempotencyHeaderMiddleware
from idempotency_header_middleware.backends import MemoryBackend
from pages import Site, pages, serve

site = Site()
app = pages(site)
app.add_middleware(IdempotencyHeaderMiddleware, backend=MemoryBackend(expiry=2))
serve(
    app,
    site,
    [
        "expiry=2 (default 24 h), so that expiry can be seen",
        "it has no option that requires a key",
        "it keeps JSON responses only: those of other pages are not stored",
    ],
)
