"""Divides an export into files, each small enough for one apply.

Rule: a file holds entries of one kind, in the export's order. A kind that takes several files says
so in each of them (`part: 2/3`): an apply with --prune refuses a part without the others, because
it would remove what the others declare.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from logberg.client.request_size import RequestSize, size_of
from logberg.declared.writing import entries_to_write, lines_of
from metadata.messages.declared import ExportReply

_RESERVE: Final = 50
"""What a request has besides the entries."""
_NOTHING: Final = RequestSize(0, 0, 0)


class DeclaredFile(NamedTuple):
    """One file of an export."""

    name: str
    lines: Iterator[str]
    too_large: str
    """The name of the one entry in the file, if no apply takes it; else empty."""


def files_of(export: ExportReply, kinds: Iterable[str]) -> Iterator[DeclaredFile]:
    """Yield the files of an export, one or more for each kind."""
    for kind in kinds:
        pieces = _pieces(kind, entries_to_write(export, kind))
        for number, piece in enumerate(pieces, 1):
            alone = len(pieces) == 1
            yield DeclaredFile(
                f"{kind}.yaml" if alone else f"{kind}-{number}.yaml",
                lines_of(export, {kind: piece}, "" if alone else f"{number}/{len(pieces)}"),
                _too_large(kind, piece),
            )


def fits_one_apply(export: ExportReply, kinds: Iterable[str]) -> bool:
    """Return whether one apply takes the whole export."""
    whole = _NOTHING
    for kind in kinds:
        for entry in entries_to_write(export, kind):
            whole = whole.and_more(*_size(kind, entry))
    return whole.fits(_RESERVE)


def _pieces(kind: str, entries: Iterable[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return the entries of each file; one file without entries if there are none."""
    pieces: list[list[dict[str, Any]]] = [[]]
    whole = _NOTHING
    for entry in entries:
        size = _size(kind, entry)
        if pieces[-1] and not whole.and_more(*size).fits(_RESERVE):
            pieces.append([])
            whole = _NOTHING
        pieces[-1].append(entry)
        whole = whole.and_more(*size)
    return pieces


def _too_large(kind: str, piece: list[dict[str, Any]]) -> str:
    """Return the name of the only entry of a file, if no apply takes it; else the empty text."""
    if len(piece) != 1 or _size(kind, piece[0]).fits(_RESERVE):
        return ""
    return str(piece[0].get("name", kind))


def _size(kind: str, entry: dict[str, Any]) -> RequestSize:
    """Return the size that an entry has in a request, at least."""
    # An entity's parts become objects. A user gets a salt, a password and a flag.
    parts = len(entry["entity"]) if kind == "quotas" else 0
    user = kind == "users"
    return size_of(entry).and_more(parts, parts + (4 if user else 1), 80 * parts + 800 * user + 100)
