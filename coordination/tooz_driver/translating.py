"""What tooz calls things, and what we do: URLs, names and errors.

Rule: tooz's ids are bytes of any kind, ours are text. An id becomes text by percent-encoding, which
can be undone and leaves common ids as they are. An id that is given as text is its UTF-8 bytes.
"""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import quote, unquote_to_bytes, urlencode

import tooz
from tooz import coordination

from coordination.errors import (
    AuthFailed,
    ConfigError,
    CoordinationError,
    DeadlineExceeded,
    OutcomeUnknown,
    SessionLost,
    Unavailable,
)

SCHEMES: Final[Mapping[str, str]] = {
    "logberg+http": "quorum+http",
    "logberg+https": "quorum+https",
    "logberg+etcd+http": "etcd+http",
    "logberg+etcd+https": "etcd+https",
    "logberg+consul+http": "consul+http",
    "logberg+consul+https": "consul+https",
    "logberg+zookeeper": "zookeeper",
    "logberg+cassandra": "cassandra",
    "logberg+memory": "memory",
}
"""By tooz's scheme, ours. Each is an entry point."""
_NAMESPACE: Final = "tooz"


def as_bytes(given: bytes | str) -> bytes:
    """Return an id as tooz hands ids out."""
    return given.encode() if isinstance(given, str) else given


def as_text(given: bytes | str) -> str:
    """Return an id as a name of ours."""
    return quote(as_bytes(given), safe="")


def from_text(name: str) -> bytes:
    """Undo `as_text`."""
    return unquote_to_bytes(name)


def our_url(parsed_url: Any, options: Mapping[str, str]) -> tuple[str, str]:
    """Return our URL and the namespace, from tooz's URL and what is left of its options.

    The path is the namespace; for Cassandra it is the keyspace, as in our own URLs.
    """
    scheme = SCHEMES[parsed_url.scheme]
    path = parsed_url.path.strip("/")
    query = f"?{urlencode(options)}" if options else ""
    if scheme == "cassandra":
        return f"{scheme}://{parsed_url.netloc}/{path}{query}", _NAMESPACE
    return f"{scheme}://{parsed_url.netloc}{query}", path or _NAMESPACE


@contextmanager
def translated() -> Generator[None]:
    """Raise our errors as tooz's."""
    try:
        yield
    except (AuthFailed, Unavailable) as error:
        raise coordination.ToozConnectionError(str(error)) from error
    except (DeadlineExceeded, OutcomeUnknown) as error:
        raise coordination.OperationTimedOut(str(error)) from error
    except SessionLost as error:
        raise tooz.ToozError(
            f"the session is over ({error}), and with it all memberships and locks: stop the "
            "coordinator and start it again"
        ) from error
    except ConfigError as error:
        raise tooz.ToozError(f"the coordinator's URL or an option is wrong: {error}") from error
    except CoordinationError as error:
        raise tooz.ToozError(str(error)) from error
