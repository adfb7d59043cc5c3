"""idemkit's ASGI middleware before the pages, with its memory backend."""

from idemkit import HttpConfig, IdempotencyMiddleware, InMemoryBackend
from pages import CALLER, Site, pages, serve

site = Site()
app = pages(site)
config = HttpConfig(
    require_key_for_mutations=True,
    expires_after_seconds=2.0,
    scope=lambda request: request.headers[CALLER],
)
app.add_middleware(IdempotencyMiddleware, backend=InMemoryBackend(), config=config)
serve(
    app,
    site,
    [
        "require_key_for_mutations=True (default False), since the contract requires a key",
        "expires_after_seconds=2.0 (default 24 h), so that expiry can be seen",
        "scope by the header X-Caller (default: one scope for all), so that callers can be told apart",
        "a copy of a live run waits up to 10 s for its answer, as is its default",
    ],
)
