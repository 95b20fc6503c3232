"""`logberg audit keys`: which keys sign heads, how each came to count, and what heads are worth."""

from typing import Any

import click

from audit.places.replicas import one_replica
from audit.questions.head_keys import HeadAudit, HeadEvent, KeyEvent
from audit.reading.dump import utc
from audit.reading.feed import until_damage
from ledger.merkle.heads import origin_of
from ledger.merkle.notes import NoteKey
from logberg.cli.failure import Failure
from logberg.cli.output import output_option, print_json, say
from logberg.cli.progress import progress
from logberg.commands.audit.failures import (
    fail_for,
    failing,
    keep_going_option,
    print_notes,
    where_argument,
)
from logberg.commands.audit.record_output import cause, cause_json
from metadata.records import HeadKeyCause


@click.command("keys")
@where_argument
@click.option("--lines", is_flag=True, help="Print only the keys that count, one on each line.")
@keep_going_option
@output_option
def command(where: str, *, lines: bool, keep_going: bool, output: str) -> None:
    """Show each change of a key that signs heads, with its cause, and check all signed heads.

    The tree is computed anew from the log. Exit 1 if a head has another root or no majority, or if
    a key was changed without the signatures that this needs; the message names the offset.
    """
    damage: list[str] | None = [] if keep_going else None
    changes: list[KeyEvent] = []
    wrong: list[KeyEvent | HeadEvent] = []
    newest: HeadEvent | None = None
    with failing():
        reader = one_replica(where).reader()
        audit = HeadAudit(reader.cluster_id, whole=reader.log_start == 0)
        with progress("reading the log") as on_progress:
            for number, batch in enumerate(until_damage(reader.batches(), damage)):
                if number % 4096 == 0:
                    on_progress(batch.header.base_offset - reader.log_start, reader.log_end)
                for event in audit.read(batch):
                    if event.problem:
                        wrong.append(event)
                    if isinstance(event, KeyEvent):
                        changes.append(event)
                    else:
                        newest = event
        print_notes(reader.notes)
    cluster_id = reader.cluster_id
    if lines:
        for _, event in sorted(audit.keys.items()):
            say(_line(cluster_id, event))
    elif output == "json":
        print_json(
            {
                "changes": [_key_json(cluster_id, event) for event in changes],
                "heads": audit.heads,
                "newest": None if newest is None else _head_json(newest),
                "rootsChecked": reader.log_start == 0,
                "wrong": [{"offset": each.offset, "why": each.problem} for each in wrong],
            }
        )
    else:
        _show(cluster_id, changes, audit, newest, whole=reader.log_start == 0)
    fail_for(damage)
    if wrong:
        first = wrong[0]
        raise Failure(f"offset {first.offset}: {first.problem}; {len(wrong)} in all")


def _show(
    cluster_id: str,
    changes: list[KeyEvent],
    audit: HeadAudit,
    newest: HeadEvent | None,
    *,
    whole: bool,
) -> None:
    for event in changes:
        what = HeadKeyCause(event.record.cause).name.lower()
        say(
            f"{event.offset}  {utc(event.header.timestamp_ms)}  controller "
            f"{event.record.controller_id}  {what}  {cause(event.header)}"
        )
        say(f"    {_line(cluster_id, event)}")
        if event.problem:
            say(f"    WRONG: {event.problem}")
    if newest is None:
        say("the log has no signed head")
        return
    names = ", ".join(map(str, newest.signers))
    say(
        f"{audit.heads} signed heads; the newest at offset {newest.offset}, of "
        f"{newest.record.size} batches, signed by {names}"
    )
    if not whole:
        say("the log begins later than at offset 0: signatures were checked, and no roots")


def _line(cluster_id: str, event: KeyEvent) -> str:
    return NoteKey(origin_of(cluster_id), event.record.public_key).text


def _key_json(cluster_id: str, event: KeyEvent) -> dict[str, Any]:
    return {
        **cause_json(event.header),
        "offset": event.offset,
        "nodeId": event.record.controller_id,
        "change": HeadKeyCause(event.record.cause).name.lower(),
        "key": _line(cluster_id, event),
    }


def _head_json(event: HeadEvent) -> dict[str, Any]:
    return {
        "offset": event.offset,
        "size": event.record.size,
        "root": event.record.root.hex(),
        "signedBy": event.signers,
    }
