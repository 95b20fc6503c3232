"""Where coordination stands among etcd's keys.

Rule: everything is below one root, the path of the URL or `logberg`. Keys of storage stand as they
are, so that etcd's own tools can read them. Names of resources and ids are escaped, so that "a/b"
is not inside of "a".

    logberg/keys/<key>                      a key of storage
    logberg/group/<name>/<id>               a member; leased by its session, as the next two
    logberg/election/<name>/<id>            a candidate
    logberg/lock/<name>/<id>                a holder or a waiter
    logberg/sessions/<session>              a session
    logberg/attempts/<session>/<number>     the last commit that a session made by this slot
    logberg/requests/<request id>           a commit that named its request id, for some minutes
"""

from typing import Final
from urllib.parse import quote, unquote

from coordination.backend import Resource, ResourceEntries, ResourceEntry, count_granted
from coordination.backends.etcd.messages import EtcdKey
from coordination.types import Record, Revision, SessionId, Token

DEFAULT_ROOT: Final = "logberg"
_EXCLUSIVE: Final = b"x"
_SHARED: Final = b"s"


class EtcdLayout:
    """Names the keys below one root, and reads what stands in them."""

    def __init__(self, root: str) -> None:
        self._root = (root.strip("/") or DEFAULT_ROOT).encode()
        self._keys = self._root + b"/keys/"

    def key(self, key: str) -> bytes:
        """Return the place of a key of storage; also of a prefix."""
        return self._keys + key.encode()

    def resource(self, resource: Resource) -> bytes:
        """Return what all entries of a resource begin with."""
        return b"%s/%s/%s/" % (self._root, resource.kind.encode(), _escaped(resource.name))

    def entry(self, resource: Resource, id_: str) -> bytes:
        """Return the place of one entry."""
        return self.resource(resource) + _escaped(id_)

    def session(self, session: SessionId) -> bytes:
        """Return the place of a session."""
        return b"%s/sessions/%s" % (self._root, _escaped(session))

    def attempt(self, session: SessionId, slot: int) -> bytes:
        """Return the place of a session's slot."""
        return b"%s/attempts/%s/%d" % (self._root, _escaped(session), slot)

    def request(self, request_id: str) -> bytes:
        """Return the place of a request id."""
        return b"%s/requests/%s" % (self._root, _escaped(request_id))

    def record(self, found: EtcdKey) -> Record:
        """Read a key of storage."""
        return Record(
            key=self.key_name(found),
            value=found.value,
            create_revision=Revision(found.create_revision),
            mod_revision=Revision(found.mod_revision),
            version=found.version,
            session=session_id(found.lease) if found.lease else None,
        )

    def key_name(self, found: EtcdKey) -> str:
        """Return the name of a key of storage. Bytes that others wrote may be no UTF-8."""
        return found.key[len(self._keys) :].decode(errors="replace")

    def entries(
        self, resource: Resource, found: tuple[EtcdKey, ...], revision: int
    ) -> ResourceEntries:
        """Read a resource from its keys; the queue is in order of their creation."""
        start = len(self.resource(resource))
        queue = sorted(found, key=lambda each: each.create_revision)
        shared = [place.value[:1] == _SHARED for place in queue]
        granted = count_granted(resource.kind, shared)
        entries = tuple(
            ResourceEntry(
                id=unquote(place.key[start:].decode()),
                data=place.value[1:],
                session=session_id(place.lease),
                token=Token(place.create_revision),
                revision=Revision(place.mod_revision),
                granted=number < granted,
                shared=shared[number],
            )
            for number, place in enumerate(queue)
        )
        return ResourceEntries(Revision(revision), entries)


def entry_value(data: bytes, *, shared: bool) -> bytes:
    """Return what stands in an entry: whether it is shared, then its data."""
    return (_SHARED if shared else _EXCLUSIVE) + data


def session_id(lease: int) -> SessionId:
    """Return the name of a session, as etcdctl shows its lease."""
    return SessionId(f"{lease:016x}")


def _escaped(name: str) -> bytes:
    return quote(name, safe=" :@+=,;!").encode()
