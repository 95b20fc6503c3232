"""The refusal of a request by the server itself.

Rule: the handler never sees a request that is refused. The client gets a status, a code and a
sentence that says what to do.
"""

from http import HTTPStatus


class RefusedError(Exception):
    """The server refuses a request; the handler never sees it."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message


def bad_request(message: str) -> RefusedError:
    """Return the refusal for a request that is not understood."""
    return RefusedError(HTTPStatus.BAD_REQUEST, "INVALID_REQUEST", message)


def throttled() -> RefusedError:
    """Return the refusal of a body that the memory budget has no room for."""
    return RefusedError(
        HTTPStatus.TOO_MANY_REQUESTS,
        "THROTTLED",
        "bodies of other requests take up all the memory that is set aside for them; this one "
        "was not read: send it again in a second",
    )


def too_large(bytes_max: int) -> RefusedError:
    """Return the refusal of a body beyond the size limit."""
    return RefusedError(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        "BODY_TOO_LARGE",
        f"a body may have {bytes_max} bytes at most: send less at once",
    )


def body_timed_out(deadline_s: float) -> RefusedError:
    """Return the refusal of a body that arrives too slowly."""
    return RefusedError(
        HTTPStatus.REQUEST_TIMEOUT,
        "BODY_TIMED_OUT",
        f"the body did not arrive within {deadline_s:g} s of its head",
    )
