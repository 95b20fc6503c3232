"""Where coordination stands among Consul's keys.

Rule: everything is below one root, the path of the URL or `logberg`. Consul takes keys in URLs, and
its server cleans paths. So every character that a path could lose or change is escaped, also a
slash after a slash. An escaped prefix of a key is a prefix of the escaped key.

    logberg/keys/<key>                      a key of storage
    logberg/group/<name>/<id>               a member; it ends with its session, as the next two
    logberg/election/<name>/<id>            a candidate
    logberg/lock/<name>/<id>                a holder or a waiter
    logberg/attempts/<session>/<number>     the last commit that a session made by this slot
    logberg/requests/<request id>           a commit that named its request id, for some minutes
"""

from collections.abc import Iterable
from typing import Final
from urllib.parse import quote, unquote

from coordination.backend import Resource, ResourceEntries, ResourceEntry, count_granted
from coordination.backends.consul.messages import ConsulKey
from coordination.types import Record, Revision, SessionId, Token

DEFAULT_ROOT: Final = "logberg"
_EXCLUSIVE: Final = b"x"
_SHARED: Final = b"s"


class ConsulLayout:
    """Names the keys below one root, and reads what stands in them."""

    def __init__(self, root: str) -> None:
        self._root = root.strip("/") or DEFAULT_ROOT
        self._keys = f"{self._root}/keys/"

    def key(self, key: str) -> str:
        """Return the place of a key of storage; also of a prefix."""
        return self._keys + _escaped_path(key)

    def resource(self, resource: Resource) -> str:
        """Return what all entries of a resource begin with."""
        return f"{self._root}/{resource.kind}/{_escaped(resource.name)}/"

    def entry(self, resource: Resource, id_: str) -> str:
        """Return the place of one entry."""
        return self.resource(resource) + _escaped(id_)

    def attempt(self, session: SessionId, slot: int) -> str:
        """Return the place of a session's slot."""
        return f"{self._root}/attempts/{session}/{slot}"

    def request(self, request_id: str) -> str:
        """Return the place of a request id."""
        return f"{self._root}/requests/{_escaped(request_id)}"

    def record(self, found: ConsulKey) -> Record:
        """Read a key of storage."""
        return Record(
            key=self.key_name(found),
            value=found.content,
            create_revision=Revision(found.CreateIndex),
            mod_revision=Revision(found.ModifyIndex),
            version=max(1, found.Flags),
            session=SessionId(found.Session) if found.Session else None,
        )

    def key_name(self, found: ConsulKey) -> str:
        """Return the name of a key of storage."""
        return unquote(found.Key[len(self._keys) :])

    def entries(
        self, resource: Resource, found: Iterable[ConsulKey], index: int
    ) -> ResourceEntries:
        """Read a resource from its keys; the queue is in order of their creation."""
        start = len(self.resource(resource))
        # A key without a session is none of ours.
        queue = sorted((each for each in found if each.Session), key=lambda each: each.CreateIndex)
        shared = [place.content[:1] == _SHARED for place in queue]
        granted = count_granted(resource.kind, shared)
        entries = tuple(
            ResourceEntry(
                id=unquote(place.Key[start:]),
                data=place.content[1:],
                session=SessionId(place.Session),
                token=Token(place.CreateIndex),
                revision=Revision(place.ModifyIndex),
                granted=number < granted,
                shared=shared[number],
            )
            for number, place in enumerate(queue)
        )
        return ResourceEntries(Revision(index), entries)


def entry_value(data: bytes, *, shared: bool) -> bytes:
    """Return what stands in an entry: whether it is shared, then its data."""
    return (_SHARED if shared else _EXCLUSIVE) + data


def _escaped(name: str) -> str:
    """Escape a name as one part of a path."""
    return quote(name, safe="").replace(".", "%2E")


def _escaped_path(key: str) -> str:
    """Escape a key, and keep those slashes that a path keeps."""
    parts = []
    before = "/"
    for character in key:
        keeps = character == "/" and before != "/"
        parts.append("/" if keeps else _escaped(character))
        before = character
    return "".join(parts)
