"""The pages on FastAPI with no layer: shows that what fails behind a layer does not fail for want of it."""

from pages import Site, pages, serve

site = Site()
serve(pages(site), site, [])
