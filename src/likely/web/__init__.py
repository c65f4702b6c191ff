"""HTTP service and page: each route is one verb of the library.

Never: formulas; a path or an address taken from a request.
"""

from __future__ import annotations

from likely.web._server import ServeOptions, serve

__all__ = ["ServeOptions", "serve"]
