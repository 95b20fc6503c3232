"""The views of the console: each answers one question as values for JSON.

Rule: a view reads its parameters first and refuses what it doesn't know. An answer has at most a
page of rows, and says how to get the next one.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from audit.console.asked import ConsoleQuery, OtherWord
from audit.console.found import LogFindings
from audit.console.log_source import LogSource
from audit.console.moments_of_index import IndexedMoments
from audit.index.answers import IndexedRecord
from audit.index.log_index import LogIndex
from audit.index.partial_image import EXPLAINED
from metadata.codec import decode_records
from metadata.image import MetadataImage
from metadata.messages.findings import Explanation
from metadata.messages.records_json import record_to_json

COUNTED_MAX: Final = 10_000
_PARTS_MAX: Final = 600


Explain = Callable[[MetadataImage, str, str], Sequence[Explanation]]
"""Says why an entry is as it is: takes an image with what surrounds it, its table and its name."""


class Viewed(NamedTuple):
    """What views read."""

    log_index: LogIndex
    source: LogSource
    findings: LogFindings
    explain: Explain | None = None
    pseudonym: OtherWord = lambda _word: None
    """Finds the pseudonym of a person whose name somebody typed."""


class FoundPage(msgspec.Struct, frozen=True, rename="camel"):
    """Records that were found, newest first."""

    items: list[dict[str, Any]]
    total: int
    """How many match, as far as they were counted."""
    is_more: bool
    """More than `total` match."""
    next: str


def moment(asked: ConsoleQuery, viewed: Viewed) -> dict[str, Any]:
    """Return a moment's offset, time and batch."""
    at = IndexedMoments(viewed.log_index).offset(asked.text("at"))
    return _moment(viewed.log_index, at)


def _moment(index: LogIndex, at: int) -> dict[str, Any]:
    batch = index.batch_before(at)
    return {"offset": at, "timeMs": 0 if batch is None else batch.time_ms, "batch": batch}


def activity(asked: ConsoleQuery, viewed: Viewed) -> dict[str, Any]:
    """Return the number of records in equal parts of the log's time."""
    return {"parts": viewed.log_index.activity(max(1, asked.number("parts", 200, _PARTS_MAX)))}


def search(asked: ConsoleQuery, viewed: Viewed) -> FoundPage:
    """Return records that match, newest first; `before` begins the page at an older offset."""
    wanted = asked.search(IndexedMoments(viewed.log_index), viewed.pseudonym)
    before = asked.number("before", 2**62, 2**62)
    limit = asked.limit()
    offsets = viewed.log_index.found(wanted, newest_first=True, limit=COUNTED_MAX + 1)
    if len(offsets) > COUNTED_MAX or before <= offsets[-1:][0] if offsets else False:
        older = msgspec.structs.replace(wanted, end=min(wanted.end, before))
        page = viewed.log_index.found(older, newest_first=True, limit=limit + 1)
    else:
        page = [offset for offset in offsets if offset < before][: limit + 1]
    total = min(len(offsets), COUNTED_MAX)
    following = str(page[limit - 1]) if len(page) > limit else ""
    items = [row(one) for one in viewed.log_index.records(page[:limit])]
    return FoundPage(items, total, len(offsets) > COUNTED_MAX, following)


def row(record: IndexedRecord) -> dict[str, Any]:
    """Return a record that was found as a flat row, for the page and for exports."""
    cause = record.cause
    return {
        "offset": record.offset,
        "timeMs": cause.time_ms,
        "type": record.type,
        "subjects": record.subjects,
        "outcome": record.outcome,
        "principal": cause.principal,
        "onBehalfOf": cause.on_behalf_of,
        "actedAs": cause.acted_as,
        "authMethod": cause.auth_method,
        "clientAddress": cause.client_address,
        "clientId": cause.client_id,
        "operation": cause.operation,
        "reason": cause.reason,
        "requestId": cause.request_id,
        "epoch": cause.epoch,
        "batch": cause.base,
    }


def record(asked: ConsoleQuery, viewed: Viewed) -> dict[str, Any]:
    """Return one record with its fields, read from the log itself; secrets are starred."""
    offset = asked.number("offset", -1, 2**62)
    if not viewed.log_index.log_start <= offset < viewed.log_index.mark.log_end:
        raise LookupError(f"offset {offset} is not in the log")
    batch = viewed.source.batch_at(offset)
    found = decode_records(batch.records)[offset - batch.header.base_offset]
    (one,) = viewed.log_index.records([offset])
    return {**row(one), **record_to_json(found), "hash": batch.hash.hex()}


def counts(asked: ConsoleQuery, viewed: Viewed) -> dict[str, Any]:
    """Return how many entries each table has at a moment."""
    at = IndexedMoments(viewed.log_index).offset(asked.text("at"))
    return {**_moment(viewed.log_index, at), "tables": viewed.log_index.counts(at)}


def state(asked: ConsoleQuery, viewed: Viewed) -> dict[str, Any]:
    """Return entries of a table at a moment, in the order of names."""
    at = IndexedMoments(viewed.log_index).offset(asked.text("at"))
    table = asked.table()
    page = viewed.log_index.entries(
        at, table, like=asked.text("name"), after=asked.text("after"), limit=asked.limit()
    )
    return {"offset": at, "table": table, "items": page.items, "next": page.next}


def different(asked: ConsoleQuery, viewed: Viewed) -> dict[str, Any]:
    """Return how many entries differ between two moments, by table and kind."""
    moments = IndexedMoments(viewed.log_index)
    before, after = moments.offset(asked.text("from", "0")), moments.offset(asked.text("to"))
    return {
        "before": _moment(viewed.log_index, before),
        "after": _moment(viewed.log_index, after),
        "tables": viewed.log_index.different(before, after),
    }


def diff(asked: ConsoleQuery, viewed: Viewed) -> dict[str, Any]:
    """Return entries that differ between two moments."""
    moments = IndexedMoments(viewed.log_index)
    before, after = moments.offset(asked.text("from", "0")), moments.offset(asked.text("to"))
    page = viewed.log_index.differences(
        before,
        after,
        table=asked.table(needed=False),
        like=asked.text("name"),
        begin=asked.text("after"),
        limit=asked.limit(),
    )
    return {"items": page.items, "next": page.next}


def thing(asked: ConsoleQuery, viewed: Viewed) -> dict[str, Any]:
    """Return one entry: its fields at a moment, and its values so far, newest first."""
    index = viewed.log_index
    at = IndexedMoments(index).offset(asked.text("at"))
    table, name = asked.table(), asked.text("name")
    number = asked.number("life", 0, 10_000)
    before, limit = asked.number("before", 2**62, 2**62), asked.limit()
    found = index.things(table, name)
    if number >= len(found):
        raise LookupError(f"{table} never had an entry {name!r}")
    page = index.versions(table, found[number], before=before, limit=limit)
    return {
        **_moment(index, at),
        "table": table,
        "name": name,
        "lives": len(found),
        "life": number,
        "fields": index.entry(at, found[number]),
        "versions": page.items,
        "next": page.next,
        "others": [one for one in index.named(name) if one.table != table],
    }


def explain(asked: ConsoleQuery, viewed: Viewed) -> dict[str, Any]:
    """Return why an entry is as it is at a moment, in sentences."""
    at = IndexedMoments(viewed.log_index).offset(asked.text("at"))
    table, name = asked.table(), asked.text("name")
    if viewed.explain is None or table not in EXPLAINED:
        return {"isKnown": False, "findings": []}
    image = viewed.log_index.image_around(at, table, name)
    if image is None:
        raise LookupError(f"{name!r} of the table {table} is not there at offset {at}")
    return {"isKnown": True, "findings": viewed.explain(image, table, name)}


def findings(_asked: ConsoleQuery, viewed: Viewed) -> dict[str, Any]:
    """Return what somebody should look at, the worst first."""
    return viewed.findings.shown()


View = Callable[[ConsoleQuery, Viewed], Any]
VIEWS: Final[Mapping[str, View]] = {
    "moment": moment,
    "activity": activity,
    "search": search,
    "record": record,
    "counts": counts,
    "state": state,
    "different": different,
    "diff": diff,
    "thing": thing,
    "explain": explain,
    "findings": findings,
}
