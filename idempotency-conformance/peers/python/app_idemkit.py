"""idemkit's ASGI middleware before the pages, with its memory backend."""

from idemkit import HttpConfig, IdempotencyMiddleware, InMemoryBackend
from pages import Site, pages, serve

site = Site()
app = pages(site)
config = HttpConfig(require_key_for_mutations=True, expires_after_seconds=2.0)
app.add_middleware(IdempotencyMiddleware, backend=InMemoryBackend(), config=config)
serve(
    app,
    site,
    [
        "require_key_for_mutations=True (default False), since the contract requires a key",
        "expires_after_seconds=2.0 (default 24 h), so that expiry can be seen",
        "a copy of a live run waits up to 10 s for its answer, as is its default",
    ],
)
