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

from collections.abc import Iterable
from dataclasses import replace
from operator import attrgetter
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

    def waiting(self, resource: Resource, found: EtcdKey) -> ResourceEntry:
        """Read one entry of a resource, as if it were not granted."""
        return ResourceEntry(
            id=unquote(found.key[len(self.resource(resource)) :].decode()),
            data=found.value[1:],
            session=session_id(found.lease),
            token=Token(found.create_revision),
            revision=Revision(found.mod_revision),
            granted=False,
            shared=found.value[:1] == _SHARED,
        )

    def entries(
        self, resource: Resource, found: Iterable[EtcdKey], revision: int
    ) -> ResourceEntries:
        """Read a resource from its keys."""
        return queue(resource, [self.waiting(resource, each) for each in found], revision)


def queue(resource: Resource, found: Iterable[ResourceEntry], revision: int) -> ResourceEntries:
    """Put the entries of a resource in order of their creation, and grant the first ones."""
    entries = sorted(found, key=attrgetter("token"))
    granted = count_granted(resource.kind, [each.shared for each in entries])
    entries[:granted] = [replace(each, granted=True) for each in entries[:granted]]
    return ResourceEntries(Revision(revision), tuple(entries))


def entry_value(data: bytes, *, shared: bool) -> bytes:
    """Return what stands in an entry: whether it is shared, then its data."""
    return (_SHARED if shared else _EXCLUSIVE) + data


def session_id(lease: int) -> SessionId:
    """Return the name of a session, as etcdctl shows its lease."""
    return SessionId(f"{lease:016x}")


def _escaped(name: str) -> bytes:
    return quote(name, safe=" :@+=,;!").encode()
