"""The last changes of a thing as the log has them, for `logberg explain`.

Rule: the log is read backwards from its end, or from the moment of `--at`, in pieces, until the
records are found that last changed the thing, or until so many records were read as `--records`
says.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import click
import msgspec

from logberg.cli.output import print_json, say
from logberg.client.client import LogbergClient
from metadata.messages.findings import Explanation
from metadata.messages.log import BatchInWords, RecordInWords
from metadata.pseudonyms import person_words

PIECE = 2_000
"""Records that are asked for at a time."""
SHOWN = 3
"""So many changes are shown, the newest first."""

Concerns = Callable[[RecordInWords], bool]


class ThingChange(NamedTuple):
    """A record about the thing, and the batch that it stands in."""

    batch: BatchInWords
    offset: int
    """The record's own."""
    record: RecordInWords


class ThingChanges(msgspec.Struct, frozen=True):
    """The newest changes of a thing, newest first."""

    found: list[ThingChange]
    down_to: int
    """The log was read back to this offset."""


def depth_option(wrapped: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command `--records`."""
    return click.option(
        "--records",
        "depth",
        type=click.IntRange(min=1),
        default=100_000,
        show_default=True,
        help="How many of the newest records to search for the cause.",
    )(wrapped)


async def last_changes(
    client: LogbergClient, end: int, depth: int, concerns: Concerns
) -> ThingChanges:
    """Read the log backwards for the last changes of a thing."""
    found: list[ThingChange] = []
    # A controller may not have the beginning of the log.
    lowest = max((await client.log(end)).log_start, end - depth)
    while end > lowest and len(found) < SHOWN:
        start = max(lowest, end - PIECE)
        piece = [batch async for batch in _batches(client, start, end)]
        for batch in reversed(piece):
            for place in reversed(range(len(batch.records))):
                record = batch.records[place]
                if len(found) < SHOWN and concerns(record):
                    found.append(ThingChange(batch, batch.offset + place, record))
        end = start
    return ThingChanges(found, end)


async def _batches(client: LogbergClient, start: int, end: int) -> Any:
    """Yield the batches that begin from `start` on, and before `end`."""
    at = start
    while at < end:
        reply = await client.log(at)
        for batch in reply.batches:
            # The first one may begin before the offset that was asked for.
            if start <= batch.offset < end or (start == 0 and batch.offset < end):
                yield batch
        if reply.next_offset <= at:
            return
        at = reply.next_offset


def show_findings(
    what: str, sound: str, findings: tuple[Explanation, ...], causes: ThingChanges, output: str
) -> None:
    """Print what is so, and why. `sound`: what to say if there are no findings."""
    if output == "json":
        print_json(
            {
                "about": what,
                "findings": findings,
                "changes": [{**_facts(cause), "record": cause.record} for cause in causes.found],
                "searchedDownTo": causes.down_to,
            }
        )
        return
    say(f"{what}: {findings[0].says if findings else sound}")
    for finding in findings[1:]:
        say(f"- {finding.says}")
    for line in _lines(causes):
        say(line)


def _lines(causes: ThingChanges) -> Iterator[str]:
    if not causes.found:
        yield (f"no change of it from offset {causes.down_to} on; look further back with --records")
        return
    yield "last changed by, newest first:"
    for cause in causes.found:
        batch = cause.batch
        reason = f", because {batch.reason}" if batch.reason else ""
        who = person_words(batch.principal, batch.principal_name)
        who = f"{who} as {batch.acted_as}" if batch.acted_as else who
        yield (
            f"- offset {cause.offset}: {batch.operation} by {who}{reason}: "
            f"{cause.record.type} {_changes(cause.record)}"
        )


def _changes(record: RecordInWords) -> str:
    """Write what a record says, without the names of its thing."""
    skipped = {"topicId", "partitionId", "brokerId", "brokerEpoch", "incarnationId"}
    return ", ".join(
        f"{name}={msgspec.json.encode(value).decode()}"
        for name, value in record.data.items()
        if name not in skipped
    )


def _facts(cause: ThingChange) -> dict[str, Any]:
    batch = cause.batch
    return {
        "offset": cause.offset,
        "timestampMs": batch.timestamp_ms,
        "operation": batch.operation,
        "principal": batch.principal,
        "actedAs": batch.acted_as,
        "reason": batch.reason,
    }
