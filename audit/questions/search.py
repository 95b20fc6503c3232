"""Searches the log for records by time, principal, operation, resource, type and request.

Rule: a result shows the record's outcome (settled, aborted, open). So reading begins where no
transaction is open: at the log's start, or at a checkpoint at or below the first requested offset.
Reading continues after the last requested offset until that record's outcome is known. A batch's
header is tested before its records.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from fnmatch import translate
from typing import NamedTuple
from uuid import UUID

import msgspec

from audit.places.replicas import Replica
from audit.questions.names import Names
from audit.reading.feed import OnProgress, until_damage
from audit.reading.moments import MomentError, offset_of, time_ms
from audit.reading.settling import Logged, settled
from ledger.batch import Batch, BatchHeader
from ledger.reader import LedgerReader
from metadata.messages.records_json import record_type_name
from metadata.records import RECORD_CLASSES
from metadata.steps import finished
from metadata.uuids import UuidError, parse_uuid
from snapshots.errors import CheckpointError
from snapshots.store import list_checkpoints, load_steps

TYPES = {record_type_name(each): each for each in RECORD_CLASSES}
_WORTH_A_CHECKPOINT = 200_000
"""Records. Reading fewer than these is faster than loading a checkpoint."""
_BATCHES_PER_REPORT = 1_024


class SearchError(ValueError):
    """Raised for an invalid search. The message lists the valid options."""


class FoundRecord(NamedTuple):
    """A record that matches."""

    logged: Logged
    subjects: tuple[str, ...]


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """What to search for. None or empty matches everything."""

    principal: str | None = None
    """A glob. It matches who asked, as what, or on whose behalf. Without a colon it matches any
    kind."""
    also_principal: str | None = None
    """Another glob for the same, if there is one: a match of either is enough."""
    operation: str | None = None
    """A glob."""
    resources: tuple[str, ...] = ()
    """Globs for the words of `Record.subjects`; one match is enough. Without a colon: any kind."""
    types: tuple[str, ...] = ()
    """Names of record types as `type_name` returns them."""
    request_id: bytes | None = None
    outcomes: tuple[str, ...] = ()


def type_name(text: str) -> str:
    """Read a record type: TOPIC_RECORD, TopicRecord or topic. Raises SearchError."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", text.replace("KRaft", "Kraft"))
    name = words.replace("-", "_").upper().removesuffix("_RECORD") + "_RECORD"
    if name not in TYPES:
        known = ", ".join(sorted(each.removesuffix("_RECORD").lower() for each in TYPES))
        raise SearchError(f"there is no record type {text!r}. The types are {known}.")
    return name


def request_id(text: str) -> bytes:
    """Read a request id: 22 characters, or a UUID with hyphens. Raises SearchError."""
    with suppress(UuidError):
        return parse_uuid(text)
    with suppress(ValueError):
        return UUID(text).bytes
    raise SearchError(
        f"{text!r} is not a request id. Write 22 characters as Logberg shows it, or a UUID with "
        "hyphens."
    )


def first_offset(reader: LedgerReader, at: str | None) -> int:
    """Return the first offset of a moment: a number means itself, a time the first batch after it.

    None means the log's start. Raises MomentError, LedgerError.
    """
    if at is None:
        return reader.log_start
    end = offset_of(reader, at)
    return int(at) if _is_number(at) else end


def last_offset(reader: LedgerReader, at: str | None) -> int:
    """Return the offset at which a moment ends, exclusive. Raises MomentError, LedgerError."""
    end = offset_of(reader, at)
    return int(at) if at is not None and _is_number(at) else end


def since_ms(reader: LedgerReader, at: str | None) -> int:
    """Return the time at which a moment begins.

    A date or time is used as it is. Any other moment means the time of the first batch from there
    on; None means 0. Raises MomentError, LedgerError.
    """
    if at is None:
        return 0
    offset = first_offset(reader, at)
    with suppress(MomentError):
        return time_ms(at) if not _is_number(at) else _time_at(reader, offset)
    return _time_at(reader, offset)


def _time_at(reader: LedgerReader, offset: int) -> int:
    """Return the time of the batch that holds an offset; after the log's end, of the last one."""
    for batch in reader.batches(offset, offset + 1) if offset < reader.log_end else ():
        return batch.header.timestamp_ms
    return reader.last_timestamp_ms()


def _is_number(at: str) -> bool:
    return at.strip().isascii() and at.strip().isdecimal()


def search(
    replica: Replica,
    reader: LedgerReader,
    wanted: Filter,
    start: int,
    end: int,
    on_progress: OnProgress | None = None,
    damage: list[str] | None = None,
) -> Iterator[FoundRecord]:
    """Yield the matching records with offsets in [start, end), in order.

    `damage` as in `audit.reading.feed.Question`. Raises LedgerError, OSError.
    """
    if start >= end:
        return
    begin, names = quiet_place(replica, reader, start)
    fits = Matcher(wanted, names)
    batches = until_damage(reader.batches(begin), damage)
    for logged in settled(reporting(batches, end, on_progress)):
        names.learn(logged.record)
        if logged.offset < start:
            continue
        if logged.offset >= end:
            return
        found = fits.find(logged)
        if found is not None:
            yield found


class Matcher:
    """Applies a filter. `names` must have learned all records before the one that is tested."""

    def __init__(self, wanted: Filter, names: Names) -> None:
        self._wanted = wanted
        self._names = names
        self._types = {TYPES[name] for name in wanted.types}
        self._fits_header = _header_test(wanted)
        self._fits_subjects = _subject_test(wanted)
        self._header: BatchHeader | None = None
        self._header_fits = False

    def find(self, logged: Logged) -> FoundRecord | None:
        """Return the record with its subjects if it matches, else None."""
        if logged.header is not self._header:
            self._header = logged.header
            self._header_fits = self._fits_header(logged.header)
        if not self._header_fits or (self._types and type(logged.record) not in self._types):
            return None
        if self._wanted.outcomes and logged.outcome not in self._wanted.outcomes:
            return None
        words = logged.record.subjects(self._names)
        return FoundRecord(logged, words) if self._fits_subjects(words) else None


def quiet_place(replica: Replica, reader: LedgerReader, offset: int) -> tuple[int, Names]:
    """Return an offset, not above `offset`, where no transaction is open, and the names there.

    A checkpoint is used only if it saves much reading. If the log was cut, its first checkpoint
    gives the names, wherever reading begins. Raises LedgerError, OSError.
    """
    below = above = None
    for each in list_checkpoints(replica.disk):
        if reader.log_start + _WORTH_A_CHECKPOINT <= each.offset <= offset:
            below = each
        elif above is None and reader.log_start <= each.offset:
            above = each
    use = below or (above if reader.log_start else None)
    if use is not None:
        with suppress(CheckpointError):
            loaded = finished(load_steps(replica.disk, reader.cluster_id, use))
            names = Names(loaded.records())
            return (use.offset if use is below else reader.log_start), names
    return reader.log_start, Names()


def reporting(
    batches: Iterable[Batch], end: int, on_progress: OnProgress | None
) -> Iterator[Batch]:
    """Yield the batches and report progress now and then."""
    if on_progress is None:
        yield from batches
        return
    for number, batch in enumerate(batches, 1):
        yield batch
        if number % _BATCHES_PER_REPORT == 0:
            on_progress(batch.header.end_offset, end)


def _header_test(wanted: Filter) -> Callable[[BatchHeader], bool]:
    principal = principal_test(wanted)
    operation = None if wanted.operation is None else re.compile(translate(wanted.operation))

    def fits(header: BatchHeader) -> bool:
        who = header.provenance
        if wanted.request_id is not None and who.request_id != wanted.request_id:
            return False
        if operation is not None and not operation.match(who.operation):
            return False
        names = (who.principal, header.acted_as, who.on_behalf_of)
        return principal is None or any(map(principal, names))

    return fits


def principal_test(wanted: Filter) -> Callable[[str], bool] | None:
    """Return the test for principals; None: the filter asks for nobody."""
    if wanted.principal is None:
        return None
    first = glob(wanted.principal)
    if wanted.also_principal is None:
        return first
    second = glob(wanted.also_principal)
    return lambda principal: first(principal) or second(principal)


def _subject_test(wanted: Filter) -> Callable[[tuple[str, ...]], bool]:
    if not wanted.resources:
        return lambda _words: True
    tests = [glob(pattern) for pattern in wanted.resources]
    return lambda words: any(test(word) for test in tests for word in words)


def glob(pattern: str) -> Callable[[str], bool]:
    """Return a test for words `kind:name`.

    A pattern without a colon is compared with the name alone.
    """
    fits = re.compile(translate(pattern)).match
    if ":" in pattern:
        return lambda word: fits(word) is not None
    return lambda word: fits(word.partition(":")[2] or word) is not None
