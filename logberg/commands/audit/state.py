"""`logberg audit state`: the state of the cluster at a moment."""

from fnmatch import fnmatchcase
from typing import Any

import click

from audit.places.replicas import one_replica
from audit.questions.state import ClusterState, state_at
from audit.questions.state_words import SHOWN, Entry, counts, entries
from audit.reading.dump import utc
from audit.reading.moments import offset_of
from logberg.cli.output import facts, output_option, print_json, say, show, table
from logberg.cli.progress import progress
from logberg.commands.audit.failures import failing, print_notes, where_argument
from logberg.commands.audit.record_output import short
from logberg.commands.audit.search_options import show_secrets_option
from runtime.loop.collection import resting


@click.command("state")
@where_argument
@click.option("--at", help="An offset, a time (2026-11-20T10:00:00Z) or -2h. [default: the end]")
@click.option(
    "--show", "wanted", type=click.Choice(list(SHOWN)), help="Show the entries of this part."
)
@click.option("--name", help="Only entries of this name, which may hold * and ?.")
@show_secrets_option
@click.option("--no-hash", is_flag=True, help="Don't compute the state hash. This is quicker.")
@click.option("--no-snapshots", is_flag=True, help="Replay from offset 0; use no checkpoint.")
@output_option
def command(
    where: str,
    at: str | None,
    wanted: str | None,
    name: str | None,
    show_secrets: bool,
    no_hash: bool,
    no_snapshots: bool,
    output: str,
) -> None:
    """Show the cluster's state at an offset or a time: a part's entries, or how many each part has.

    Replay begins at the nearest checkpoint at or below the moment, or at offset 0. An offset inside
    a batch means the batch's end. Records of an open transaction don't count.
    """
    with resting(), failing(), progress("replaying") as on_progress:
        replica = one_replica(where)
        reader = replica.reader()
        state = state_at(
            replica,
            offset_of(reader, at),
            reader=reader,
            with_hash=not no_hash,
            snapshots=not no_snapshots,
            on_progress=on_progress,
        )
    chosen = _chosen(state, wanted, name, show_secrets=show_secrets)
    if output == "json":
        print_json(_json(state, chosen))
        return
    print_notes(state.notes)
    show(facts(_facts(state)))
    if wanted is None:
        show(table(["table", "entries"], counts(state.image).items()))
    for part, some in chosen.items():
        say(f"{part}: {len(some)}")
        for entry in some:
            say(f"  {entry.name}  {_fields(entry)}")


def _chosen(
    state: ClusterState, show: str | None, name: str | None, *, show_secrets: bool
) -> dict[str, list[Entry]]:
    """Return the entries to show, by table."""
    wanted = show or ("all" if name is not None else None)
    found = {
        part: [
            entry
            for entry in entries(state.image, part, show_secrets=show_secrets)
            if name is None or fnmatchcase(entry.name, name)
        ]
        for part in (SHOWN[wanted] if wanted else ())
    }
    return {part: some for part, some in found.items() if some or show not in (None, "all")}


def _facts(state: ClusterState) -> list[tuple[str, Any]]:
    image = state.image
    begun = f"from {state.checkpoint}" if state.checkpoint else "from offset 0, without a snapshot"
    told = [
        ("log", state.replica),
        ("cluster", state.cluster_id),
        ("state at", f"offset {image.offset}, epoch {image.epoch}, {utc(image.timestamp_ms)}"),
        ("replayed", f"{state.offset - state.from_offset} records, {begun}"),
        ("chain head", state.head.hex()),
    ]
    if image.state_hash is not None:
        told.append(("state hash", image.state_hash.shared_bytes().hex()))
    return told


def _fields(entry: Entry) -> str:
    return " ".join(f"{name}={short(value)}" for name, value in entry.fields.items())


def _json(state: ClusterState, chosen: dict[str, list[Entry]]) -> dict[str, Any]:
    image = state.image
    transaction = image.transaction
    return {
        "log": state.replica,
        "clusterId": state.cluster_id,
        "offset": image.offset,
        "epoch": image.epoch,
        "time": utc(image.timestamp_ms),
        "fromOffset": state.from_offset,
        "checkpoint": state.checkpoint or None,
        "records": state.offset - state.from_offset,
        "head": state.head.hex(),
        "stateHash": image.state_hash.shared_bytes().hex() if image.state_hash else None,
        "fullStateHash": image.state_hash.encode().hex() if image.state_hash else None,
        "openTransactionSince": transaction.offset if transaction else None,
        "entries": counts(image),
        "tables": {
            part: [{"name": entry.name, **entry.fields} for entry in some]
            for part, some in chosen.items()
        },
        "notes": state.notes,
    }
