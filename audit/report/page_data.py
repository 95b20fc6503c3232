"""What the page's script draws and shows when it is asked, packed into one string.

Rule: the page shows without it all that counts. It is JSON, compressed by zlib and written in
base64, so no name in it can become markup. The same facts give the same string.
"""

import base64
import zlib

import msgspec

from audit.report.details import Details, RecordAt
from audit.report.facts import Facts, ShownRecord
from audit.report.timelines import Timelines


def packed(facts: Facts, found: Timelines, details: Details) -> str:
    """Return the data of the page. Reads the records that its details name."""
    wanted = details.wanted()
    places = {place: number for number, place in enumerate(wanted)}
    data = {
        "period": list(facts.period),
        "where": facts.where,
        "asked": found.asked,
        "states": found.states,
        "lines": found.lines,
        "brokers": found.brokers,
        "records": [_record(each) for each in facts.history.records(wanted)],
        "details": [
            _detail(each.title, each.total, each.records, each.command, places)
            for each in details.all
        ],
    }
    return base64.b64encode(zlib.compress(msgspec.json.encode(data), 6)).decode()


def _record(each: ShownRecord) -> list[object]:
    return [
        each.offset,
        each.timestamp_ms,
        each.caller,
        each.operation,
        each.type.removesuffix("_RECORD").replace("_", " ").lower(),
        each.subject,
        each.reason,
    ]


def _detail(
    title: str,
    total: int,
    records: tuple[RecordAt, ...],
    command: str,
    places: dict[RecordAt, int],
) -> list[object]:
    return [title, total, [places[record] for record in records], command]
