"""Which disk errors end the process, and the messages for them.

Rule: an error after which more than the failed write may be lost ends the process. After any other
error only the failed write is refused, as a whole, and may be tried again. Only this module decides
which errors are of which kind.
"""

import errno

BROKEN = (errno.EIO, errno.EROFS)
"""Errors after which more than the failed write may be lost: the node stops."""
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
"""Errors that go away when disk space is freed."""


def explain(error: OSError, doing: str) -> OSError:
    """Return the same error with a sentence that says what failed and what to do."""
    return OSError(error.errno, sentence(error, doing))


def sentence(error: OSError, doing: str) -> str:
    """Say what failed and what to do."""
    if error.errno in NO_ROOM:
        advice = "the disk is full; free space and start the node again: nothing promised is lost"
    elif error.errno == errno.EROFS:
        advice = "the disk is read-only; make it writable and start the node again"
    else:
        where = f" ({error.filename})" if error.filename else ""
        advice = (
            f"{error.strerror or error}{where}; the node stops, because what was written may be "
            "lost: check the disk and start it again"
        )
    return f"{doing}: {advice}"
