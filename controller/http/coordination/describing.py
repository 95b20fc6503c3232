"""Describes sessions, entries and keys in replies."""

from collections.abc import Iterator

from controller.http.describe import readable_offset
from metadata.image import MetadataImage
from metadata.image.coordination import CoordinationImage, CoordinationResource, is_granted
from metadata.messages import EntryDescription, KeyDescription, SessionDescription
from metadata.records import EntryKind, EntryRecord, KeyRecord, SessionRecord
from metadata.uuids import uuid_text


def revision_of(image: MetadataImage) -> int:
    """Return the offset of the last record that a read of this image includes."""
    return readable_offset(image) - 1


def describe_session(state: CoordinationImage, session: SessionRecord) -> SessionDescription:
    """Describe a session."""
    return SessionDescription(
        uuid_text(session.session_id),
        session.ttl_ms,
        session.owner,
        session.client_name,
        session.revision,
        len(state.holdings.get(session.session_id, ())),
    )


def describe_entry(entry: EntryRecord) -> EntryDescription:
    """Describe an entry."""
    return EntryDescription(
        EntryKind(entry.kind).name.lower(),
        entry.name,
        entry.id,
        uuid_text(entry.session_id),
        entry.data,
        entry.shared,
        entry.place,
        entry.token,
        is_granted(entry),
        entry.revision,
    )


def describe_queue(
    state: CoordinationImage, resource: CoordinationResource
) -> Iterator[EntryDescription]:
    """Describe the entries of a resource, in order."""
    for _, id_ in state.queues.get(resource, ()):
        yield describe_entry(state.entries[(*resource, id_)])


def describe_key(key: KeyRecord, *, with_value: bool = True) -> KeyDescription:
    """Describe a key."""
    return KeyDescription(
        key.key,
        key.value if with_value else b"",
        key.create_revision,
        key.mod_revision,
        key.version,
    )
