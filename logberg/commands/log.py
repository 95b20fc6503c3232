"""`logberg log`: the log on disk, with no cluster needed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import msgspec

from audit.places.folder import is_locked
from audit.places.replicas import Replica, open_all
from audit.questions.agreement import Agreement, agree
from audit.questions.state import ClusterState, state_at
from audit.reading.dump import caller_of, dump, utc
from logberg.cli.default_folder import DEFAULT_FOLDER, default_folder, or_old_folder
from logberg.cli.failure import Failure
from logberg.cli.output import facts, output_option, print_json, print_line, say, show, table
from logberg.cli.progress import OnProgress, progress, progress_of_steps
from logberg.cli.suggesting_group import SuggestingGroup
from logberg.commands.audit.failures import failing
from logberg.commands.audit.record_output import short
from logberg.commands.audit.search_options import show_secrets_option
from logberg.commands.log_archive import archive
from metadata.image import MetadataImage
from quorum.journal.damage import DamagedError
from quorum.recovery.holdings import Holdings, holdings_of

_FOLDER = click.argument(
    "folder",
    type=click.Path(path_type=Path),
    default=DEFAULT_FOLDER,
    required=False,
    callback=or_old_folder,
)
_FOLDERS = click.argument("folders", type=click.Path(path_type=Path), nargs=-1)


@click.group("log", cls=SuggestingGroup)
def command() -> None:
    """Dump, replay and verify a log on disk.

    FOLDER is a controller's folder, or that of `logberg up` (then all its controllers). The default
    is ./logberg-data. The commands change nothing in it, and its node may be running.
    """


command.add_command(archive)


@command.command("dump")
@_FOLDER
@click.option("--from", "from_offset", type=int, help="Begin at this offset.")
@click.option("--to", "to_offset", type=int, help="Stop before this offset.")
@show_secrets_option
@output_option
def dump_log(
    folder: Path,
    from_offset: int | None,
    to_offset: int | None,
    show_secrets: bool,
    output: str,
) -> None:
    """Print the batches; with --output json one document on each line."""
    with failing():
        reader = _replicas(folder)[0].reader()
        for batch in dump(reader, from_offset, to_offset, show_secrets=show_secrets):
            if output == "json":
                print_line(batch)
            else:
                _show_batch(batch)


def _show_batch(batch: dict[str, Any]) -> None:
    end = batch["baseOffset"] + batch["count"] - 1
    span = f"{batch['baseOffset']}" if batch["count"] == 1 else f"{batch['baseOffset']}-{end}"
    who = caller_of(batch)
    reason = f"  “{batch['reason']}”" if "reason" in batch else ""
    say(
        f"{span}  epoch {batch['epoch']}  {batch['time']}  {who}  "
        f"{batch.get('operation', '-')}{reason}  #{batch['hash'][:12]}"
    )
    for record in batch["records"]:
        fields = " ".join(f"{name}={short(value)}" for name, value in record["data"].items())
        say(f"    {record['offset']}  {record['type']}  {fields}")


@command.command("verify")
@_FOLDERS
@output_option
def verify(folders: tuple[Path, ...], output: str) -> None:
    """Check frames, checksums, hash chain, offsets and epochs; name the first bad place.

    Several controllers' logs are also compared with each other, and the journal of each stopped
    controller is read. Exit 1 if anything is wrong.
    """
    with failing(), progress_of_steps("verifying") as on_step:
        found = agree(_replicas(*folders), on_step)
        journals = {
            log.replica.location: journal
            for log in found.logs
            if (journal := _journal_of(log.replica)) is not None
        }
    if output == "json":
        print_json(_agreement_json(found, journals))
    else:
        _show_agreement(found)
        for location, journal in journals.items():
            say(f"journal of {location}: {_in_words(journal)}")
    if not found.ok:
        raise Failure(_first_problem(found))
    for location, journal in journals.items():
        if isinstance(journal, str) or journal.damage:
            raise Failure(f"{location}: {journal if isinstance(journal, str) else journal.damage}")


def _journal_of(replica: Replica) -> Holdings | str | None:
    """Return what the journal of a stopped node holds, or why it can't be read.

    None: the folder has no journal, or a process writes to it now.
    """
    folder = Path(replica.location)
    if not (folder / "journal").is_dir() or is_locked(folder):
        return None
    try:
        return holdings_of(replica.disk)
    except DamagedError as error:
        return str(error)


def _in_words(journal: Holdings | str) -> str:
    if isinstance(journal, str):
        return f"DAMAGED: {journal}"
    verdict = f"DAMAGED: {journal.damage}" if journal.damage else "sound"
    return (
        f"{verdict}; node {journal.node_id}, generation {journal.generation.number}, epoch "
        f"{journal.epoch}, last entry {journal.last_index} of epoch {journal.last_epoch}"
    )


def _journal_json(journal: Holdings | str | None) -> dict[str, Any] | None:
    if journal is None:
        return None
    if isinstance(journal, str):
        return {"damage": journal}
    return {
        "damage": journal.damage or None,
        "nodeId": journal.node_id,
        "generation": journal.generation.number,
        "epoch": journal.epoch,
        "lastIndex": journal.last_index,
        "lastEpoch": journal.last_epoch,
    }


def _agreement_json(found: Agreement, journals: Mapping[str, Holdings | str]) -> dict[str, Any]:
    sound = not any(isinstance(each, str) or each.damage for each in journals.values())
    return {
        "ok": found.ok and sound,
        "commonOffset": found.comparison.common_offset,
        "problem": found.problem,
        "nodes": [
            {
                "folder": log.replica.location,
                "ok": log.report.ok,
                "clusterId": log.report.cluster_id,
                "segments": log.report.segments,
                "batches": log.report.batches,
                "records": log.report.records,
                "historyFrom": log.report.log_start,
                "logEnd": log.report.log_end,
                "head": log.report.head.hex(),
                "firstBad": log.report.first_bad,
                "notes": log.report.notes,
                "journal": _journal_json(journals.get(log.replica.location)),
            }
            for log in found.logs
        ],
    }


def _show_agreement(found: Agreement) -> None:
    show(
        table(
            ["log", "verdict", "segments", "batches", "records", "log end", "head"],
            [
                (
                    log.replica.name,
                    "sound" if log.report.ok else "DAMAGED",
                    log.report.segments,
                    log.report.batches,
                    log.report.records,
                    log.report.log_end,
                    log.report.head.hex()[:16],
                )
                for log in found.logs
            ],
        )
    )
    for log in found.logs:
        for note in log.report.notes:
            say(f"note: {log.replica.name}: {note}")
    if found.ok and len(found.logs) > 1:
        say(f"{len(found.logs)} logs agree up to offset {found.comparison.common_offset}")


def _first_problem(found: Agreement) -> str:
    for log in found.logs:
        if log.report.first_bad is not None:
            return f"{log.replica.location}/{log.report.first_bad}"
    return found.problem


@command.command("replay")
@_FOLDERS
@click.option("--to", "to_offset", type=int, help="Stop before this offset. [default: the end]")
@output_option
def replay_log(folders: tuple[Path, ...], to_offset: int | None, output: str) -> None:
    """Replay the log to a state, and print its hash.

    Of several logs, all must have the same state. Exit 1 if one differs.
    """
    with failing(), progress("replaying") as on_progress:
        replicas = _replicas(*folders)
        end = to_offset
        if end is None and len(replicas) > 1:
            end = agree(replicas).comparison.common_offset
        states = [_replayed(each, end, on_progress) for each in replicas]
    if output == "json":
        print_json([_state_json(state) for state in states])
    else:
        _show_states(states)
    if len({_hash(state) for state in states}) > 1:
        raise Failure("the states differ: `logberg log verify` names the first bad place.")


def _replayed(replica: Replica, end: int | None, on_progress: OnProgress) -> ClusterState:
    reader = replica.reader()
    return state_at(
        replica,
        reader.log_end if end is None else end,
        reader=reader,
        snapshots=False,
        on_progress=on_progress,
    )


def _hash(state: ClusterState) -> str:
    """The hash of what controllers and brokers share, in hexadecimal."""
    return state.state_hash.shared_bytes().hex()


def _state_json(state: ClusterState) -> dict[str, Any]:
    image = state.image
    return {
        "folder": state.replica,
        "clusterId": state.cluster_id,
        "fromOffset": state.from_offset,
        "offset": image.offset,
        "epoch": image.epoch,
        "time": utc(image.timestamp_ms),
        "batches": state.batches,
        "records": state.offset - state.from_offset,
        "brokers": len(image.cluster.brokers),
        "topics": len(image.topics.by_id),
        "partitions": len(image.topics.partitions),
        "stateHash": _hash(state),
        "head": state.head.hex(),
        "notes": state.notes,
    }


def _show_states(states: list[ClusterState]) -> None:
    for state in states:
        image = state.image
        records = state.offset - state.from_offset
        show(
            facts(
                [
                    ("log", state.replica),
                    (
                        "state at",
                        f"offset {image.offset}, epoch {image.epoch}, {utc(image.timestamp_ms)}",
                    ),
                    ("replayed", f"{records} records in {state.batches} batches"),
                    ("holds", _holds(image)),
                    ("state hash", _hash(state)),
                ]
            )
        )
    if len(states) > 1 and len({_hash(state) for state in states}) == 1:
        say(f"{len(states)} logs, one state hash")


def _holds(image: MetadataImage) -> str:
    brokers, topics = len(image.cluster.brokers), len(image.topics.by_id)
    return f"{brokers} brokers, {topics} topics, {len(image.topics.partitions)} partitions"


def _replicas(*named: Path) -> list[Replica]:
    """Open the logs in the folders that were named, or in the default folder.

    A folder without a journal counts as live too: these commands always report an unfinished tail
    as a note. `logberg audit verify` is stricter.
    """
    replicas = open_all(str(folder) for folder in named or (default_folder(),))
    return [msgspec.structs.replace(replica, live=True) for replica in replicas]
