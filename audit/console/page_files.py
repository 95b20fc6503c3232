"""The files of the page, and the headers that keep everything else out.

Rule: the page runs only its own script and style. It loads nothing from anywhere else, can't be
framed, and sends nothing but requests to its own server.
"""

from collections.abc import Mapping
from functools import cache
from http import HTTPStatus
from importlib.resources import files
from typing import Final

from runtime.http.requests import Reply

PAGE_FILES: Final[Mapping[str, tuple[str, str]]] = {
    "/": ("console.html", "text/html; charset=utf-8"),
    "/console.css": ("console.css", "text/css; charset=utf-8"),
    "/console.js": ("console.js", "text/javascript; charset=utf-8"),
    "/asking.js": ("asking.js", "text/javascript; charset=utf-8"),
    "/drawing.js": ("drawing.js", "text/javascript; charset=utf-8"),
    "/slider.js": ("slider.js", "text/javascript; charset=utf-8"),
    "/console.svg": ("console.svg", "image/svg+xml"),
    "/views.js": ("views.js", "text/javascript; charset=utf-8"),
}
"""By path: the file's name and its type. These are open to callers without a token."""
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self';"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def page_file(path: str) -> Reply | None:
    """Return a file of the page; None: there is none at this path."""
    found = PAGE_FILES.get(path)
    if found is None:
        return None
    headers = {
        "content-type": found[1],
        "content-security-policy": POLICY,
        "cache-control": "no-cache",
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
    }
    return Reply(HTTPStatus.OK, _content(found[0]), headers)


@cache
def _content(name: str) -> bytes:
    return files(__package__).joinpath("static", name).read_bytes()
