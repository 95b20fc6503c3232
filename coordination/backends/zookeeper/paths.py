"""The nodes in ZooKeeper, and how keys and names become names of nodes.

Rule: any text may be a key, and few texts may be a node's name. So each part is percent-encoded,
and nothing is lost: two keys never share a node.

| node | what it is |
|---|---|
| `<root>/keys/<folder>/<name>` | a key: its folder is all up to and with its last slash |
| `<root>/<kind>/<name>/ids/<id>` | makes an id unique in a resource; ephemeral |
| `<root>/<kind>/<name>/queue/<id>;<session>;<x or s>;<number>` | an entry; ephemeral |
| `<root>/sessions/<session>` | a live session; ephemeral |
| `<root>/receipts/<session>;<request>` | a commit that was made; ephemeral |

A node of the queue is never made twice, because ZooKeeper counts the numbers up. So a check that it
is there is a check of one grant. A folder's version grows with each key that is made or removed in
it, so it tells whether a key was made anew meanwhile (a node's own version begins at 0 again).
"""

from dataclasses import dataclass
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

from coordination.backend import Resource
from coordination.errors import ConfigError
from coordination.types import SessionId

_SAFE: Final = "-_~!$'()*+,=:@"
_EMPTY: Final = "%"
"""No percent-encoded text is this."""
_KINDS: Final = {"group": "groups", "election": "elections", "lock": "locks"}


def encoded(text: str) -> str:
    """One node's name for any text; also for the empty one, `.` and `..`."""
    return quote(text, safe=_SAFE).replace(".", "%2E") or _EMPTY


def decoded(name: str) -> str:
    """The text of a node's name."""
    return "" if name == _EMPTY else unquote(name)


class KeyPlace(NamedTuple):
    """Where a key is."""

    folder: str
    path: str


class QueueName(NamedTuple):
    """What the name of an entry's node says."""

    id: str
    session: SessionId
    shared: bool
    number: int

    def is_behind(self, other: "QueueName") -> bool:
        """Whether `other` was made before; ZooKeeper's numbers have 32 bits and begin anew."""
        return 0 < (self.number - other.number) % 2**32 < 2**31


@dataclass(frozen=True, slots=True)
class Layout:
    """The nodes below one root, which is empty or begins with a slash."""

    root: str

    @classmethod
    def of_url(cls, path: str) -> "Layout":
        """Take the root from a URL's path. Raises ConfigError."""
        parts = [part for part in path.split("/") if part]
        if parts and parts[0] == "zookeeper":
            raise ConfigError("ZooKeeper keeps /zookeeper for itself; name another path in the URL")
        if any(part in (".", "..") for part in parts):
            raise ConfigError(f"ZooKeeper has no path {path!r}: '.' and '..' aren't names there")
        return cls("".join(f"/{part}" for part in parts))

    @property
    def keys(self) -> str:
        return f"{self.root}/keys"

    @property
    def sessions(self) -> str:
        return f"{self.root}/sessions"

    @property
    def receipts(self) -> str:
        return f"{self.root}/receipts"

    def session(self, session: SessionId) -> str:
        return f"{self.sessions}/{session}"

    def receipt(self, session: SessionId, request_id: str) -> str:
        return f"{self.receipts}/{session};{encoded(request_id)}"

    def key(self, key: str) -> KeyPlace:
        cut = key.rfind("/") + 1
        folder = self.folder(key[:cut])
        return KeyPlace(folder, f"{folder}/{encoded(key[cut:])}")

    def folder(self, text: str) -> str:
        return f"{self.keys}/{encoded(text)}"

    def ids(self, resource: Resource) -> str:
        return f"{self.root}/{_KINDS[resource.kind]}/{encoded(resource.name)}/ids"

    def queue(self, resource: Resource) -> str:
        return f"{self.root}/{_KINDS[resource.kind]}/{encoded(resource.name)}/queue"

    def id_node(self, resource: Resource, id_: str) -> str:
        return f"{self.ids(resource)}/{encoded(id_)}"

    def queue_node(self, resource: Resource, id_: str, session: SessionId, *, shared: bool) -> str:
        """What ZooKeeper completes with a number."""
        return f"{self.queue(resource)}/{encoded(id_)};{session};{'s' if shared else 'x'};"


def queue_name(node: str) -> QueueName | None:
    """Read an entry's name; None for a node that isn't ours."""
    parts = node.rsplit("/", 1)[-1].split(";")
    if len(parts) != 4 or parts[2] not in ("s", "x"):
        return None
    try:
        number = int(parts[3])
    except ValueError:
        return None
    return QueueName(decoded(parts[0]), SessionId(parts[1]), parts[2] == "s", number)
