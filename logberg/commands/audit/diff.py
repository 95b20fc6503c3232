"""`logberg audit diff`: what changed."""

from pathlib import Path
from typing import Any

import click

from audit.places.replicas import one_replica
from audit.questions.diff import (
    CHANGED,
    Different,
    Side,
    StateDifference,
    between_checkpoints,
    between_offsets,
    between_replicas,
)
from audit.reading.dump import utc
from audit.reading.moments import MomentError, offset_of
from logberg.cli.output import output_option, print_json, say
from logberg.cli.progress import OnProgress, progress
from logberg.commands.audit.failures import failing, print_notes
from logberg.commands.audit.record_output import short, styled
from logberg.commands.audit.search_options import show_secrets_option
from runtime.loop.collection import resting

_USAGE = "write WHERE A B, WHERE1 WHERE2, or --snapshots FILE1 FILE2"


# The moment A may be -2h, which click must not take for an option or for -h.
@click.command(
    "diff", context_settings={"ignore_unknown_options": True, "help_option_names": ["--help"]}
)
@click.argument("what", nargs=-1, metavar="WHERE A B | WHERE1 WHERE2 | FILE1 FILE2")
@click.option("--snapshots", is_flag=True, help="Both arguments are checkpoint files.")
@click.option("--at", help="Compare two logs at this moment; default: the end of the shorter one.")
@click.option("--all", "everything", is_flag=True, help="Also show outcomes of requests.")
@show_secrets_option
@output_option
def command(
    what: tuple[str, ...],
    snapshots: bool,
    at: str | None,
    everything: bool,
    show_secrets: bool,
    output: str,
) -> None:
    """List what changed between two moments of a log, two logs, or two checkpoints.

    A and B are offsets or times, as in `logberg audit state --at`.
    """
    with resting(), failing(), progress("replaying") as on_progress:
        found = _find(what, at, on_progress, snapshots=snapshots)
    changes = [
        change
        for change in found.changes(show_secrets=show_secrets)
        if everything or change.table not in ("outcomes", "floors")
    ]
    if output == "json":
        print_json(_json(found, changes))
        return
    print_notes(found.notes)
    say(f"- {_side(found.before)}")
    say(f"+ {_side(found.after)}")
    for change in changes:
        say(styled(change.kind), f"  {change.table}  {change.name}")
        for line in _fields(change):
            say(f"    {line}")
    say(f"{len(changes)} different" if changes else "no difference")


def _find(
    what: tuple[str, ...], at: str | None, on_progress: OnProgress, *, snapshots: bool
) -> StateDifference:
    if snapshots and len(what) == 2:
        return between_checkpoints(Path(what[0]), Path(what[1]))
    if len(what) == 3 and not snapshots:
        where, first, second = what
        replica = one_replica(where)
        reader = replica.reader()
        return between_offsets(
            replica,
            offset_of(reader, first),
            offset_of(reader, second),
            reader=reader,
            with_hash=False,
            on_progress=on_progress,
        )
    if len(what) != 2 or snapshots:
        raise click.UsageError(f"{_USAGE}.")
    one, other = (one_replica(where) for where in what)
    ends = [replica.reader().log_end for replica in (one, other)]
    shorter = (one, other)[ends.index(min(ends))]
    try:
        offset = offset_of(shorter.reader(), at)
    except MomentError as error:
        raise MomentError(f"{shorter.location}: {error}") from None
    return between_replicas(one, other, offset, with_hash=False, on_progress=on_progress)


def _side(side: Side) -> str:
    image = side.image
    return f"{side.shown}, {utc(image.timestamp_ms)}, chain head {side.head.hex()[:16]}"


def _fields(change: Different) -> list[str]:
    if change.kind != CHANGED:
        held = {name: old if new is None else new for name, (old, new) in change.fields.items()}
        return [" ".join(f"{name}={short(value)}" for name, value in held.items())]
    return [f"{name}: {short(old)} → {short(new)}" for name, (old, new) in change.fields.items()]


def _json(found: StateDifference, changes: list[Different]) -> dict[str, Any]:
    return {
        "before": _side_json(found.before),
        "after": _side_json(found.after),
        "changes": [
            {
                "table": change.table,
                "name": change.name,
                "kind": change.kind,
                "fields": {
                    name: {"before": old, "after": new}
                    for name, (old, new) in change.fields.items()
                },
            }
            for change in changes
        ],
        "notes": found.notes,
    }


def _side_json(side: Side) -> dict[str, Any]:
    image = side.image
    return {
        "state": side.shown,
        "offset": image.offset,
        "time": utc(image.timestamp_ms),
        "head": side.head.hex(),
    }
