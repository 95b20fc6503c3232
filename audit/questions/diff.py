"""What changed between two states.

Rule: `metadata.image.changes`, which every agent uses, finds what was created, removed or changed.
This module adds names and fields. A field is shown with its value before and after.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from audit.places.folder import LocalTree
from audit.places.replicas import NoLogError, Replica
from audit.places.tree_disk import TreeDisk
from audit.questions.state import ClusterState, state_at, states_at
from audit.questions.state_words import differing, name_of
from audit.reading.state_start import UnbelievableCheckpointError, image_of, load
from metadata.buckets import KeyChange
from metadata.image import MetadataImage, difference
from snapshots.checkpoint import FOLDER, CheckpointId
from snapshots.errors import CheckpointError

CREATED: Final = "created"
REMOVED: Final = "removed"
CHANGED: Final = "changed"


class Different(NamedTuple):
    """One thing that differs."""

    table: str
    name: str
    kind: str
    """CREATED, REMOVED or CHANGED."""
    fields: dict[str, tuple[Any, Any]]
    """Before and after, for the fields that differ. None means that there was or is no value."""


class Side(msgspec.Struct, frozen=True):
    """A state that is compared, and its name in the output."""

    shown: str
    image: MetadataImage
    head: bytes


class StateDifference(msgspec.Struct, frozen=True):
    """All that differs between two states."""

    before: Side
    after: Side
    notes: tuple[str, ...] = ()

    def changes(self, *, show_secrets: bool = False) -> Iterator[Different]:
        """Yield the differences, table by table, sorted."""
        before, after = self.before.image, self.after.image
        for table, change in difference(before, after):
            yield _in_words(table, change, before, after, show_secrets=show_secrets)


def between_offsets(replica: Replica, first: int, second: int, **options: Any) -> StateDifference:
    """Return what changed from one offset to another, which may be the earlier one.

    Takes the options of `audit.questions.state.states_at` and raises as it does.
    """
    states = states_at(replica, (min(first, second), max(first, second)), **options)
    if second < first:
        states.reverse()
    return _of(*states)


def between_replicas(one: Replica, other: Replica, at: int, **options: Any) -> StateDifference:
    """Return how the states of two replicas differ at an offset.

    Raises as `audit.questions.state.state_at`.
    """
    return _of(state_at(one, at, **options), state_at(other, at, **options))


def between_checkpoints(one: Path, other: Path) -> StateDifference:
    """Return how the states of two checkpoint files differ.

    Raises NoLogError, CheckpointError, OSError.
    """
    return StateDifference(_side_of_file(one), _side_of_file(other))


def _of(before: ClusterState, after: ClusterState) -> StateDifference:
    notes = dict.fromkeys((*before.notes, *after.notes))
    return StateDifference(_side(before), _side(after), tuple(notes))


def _side(state: ClusterState) -> Side:
    return Side(f"{state.replica} at offset {state.offset}", state.image, state.head)


def _side_of_file(path: Path) -> Side:
    if not path.is_file():
        raise NoLogError(f"{path} is not there. Name a checkpoint file.")
    name = CheckpointId.parse(path.name)
    disk = TreeDisk(LocalTree(path.parent), bare=FOLDER)
    try:
        loaded = load(disk, None, name)
        image = image_of(loaded, check=True)
    except UnbelievableCheckpointError as error:
        raise CheckpointError(f"{path} can't be used: {error}") from error
    return Side(str(path), image, loaded.header.chain_hash)


def _in_words(
    table: str,
    change: KeyChange[Any, Any],
    before: MetadataImage,
    after: MetadataImage,
    *,
    show_secrets: bool,
) -> Different:
    fields = differing(table, change, show_secrets=show_secrets)
    kind = CREATED if change.before is None else REMOVED if change.after is None else CHANGED
    return Different(table, name_of(table, change.key, after, before), kind, fields)
