"""Reads what the controllers have written to a place: signed heads, and hashes of batches.

Rule: nothing is believed here; `audit.questions.kept_heads` checks signatures and roots. Files of
hashes may overlap, since each controller writes by itself. What doesn't fit together is left out
from there on.
"""

from audit.questions.kept_heads import KeptHeadFiles
from controller.signing.head_drop import (
    DropPlace,
    batch_ranges,
    batches_name,
    head_name,
    head_sizes,
)
from ledger.batch import HASH_BYTES
from logberg.processes.head_places import reading_place


def read_kept(where: str) -> KeptHeadFiles:
    """Read all of a place, by a path or URL. Raises OSError."""
    place = reading_place(where)
    names = place.names()
    notes = {head_name(size): place.read(head_name(size)) for size in head_sizes(names)}
    return KeptHeadFiles(notes, _hashes(place, names))


def _hashes(place: DropPlace, names: list[str]) -> bytes:
    found = b""
    for first, end in batch_ranges(names):
        have = len(found) // HASH_BYTES
        if end <= have:
            continue
        data = place.read(batches_name(first, end))
        if first > have or len(data) != HASH_BYTES * (end - first):
            break
        found += data[HASH_BYTES * (have - first) :]
    return found
