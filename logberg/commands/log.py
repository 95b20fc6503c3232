"""`logberg log`: the log on disk, with no cluster needed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from audit.places.folder import NoLogError, node_folders
from audit.questions.agreement import Agreement, agree
from audit.reading.dump import caller_of, dump, utc
from audit.reading.replay import Replayed, replay
from ledger.chain import LogMark
from ledger.errors import LedgerError
from logberg.commands.audit.progress import progress
from logberg.default_folder import DEFAULT_FOLDER, default_folder, or_old_folder
from logberg.failure import Failure
from logberg.output import facts, output_option, print_json, print_line, say, show, table
from logberg.suggesting_group import SuggestingGroup
from metadata.image import MetadataImage, ReplayError
from quorum.journal.damage import DamagedError
from quorum.journal.manifest import FILE as MANIFEST
from quorum.journal.manifest import decode_manifest
from runtime.read_only_disk import ReadOnlyDisk

_FOLDER = click.argument(
    "folder",
    type=click.Path(path_type=Path),
    default=DEFAULT_FOLDER,
    required=False,
    callback=or_old_folder,
)
_FOLDERS = click.argument("folders", type=click.Path(path_type=Path), nargs=-1)
_EXPECTED = (NoLogError, LedgerError, ReplayError, DamagedError, OSError)


@click.group("log", cls=SuggestingGroup)
def command() -> None:
    """Dump, replay and verify a log on disk.

    FOLDER is a controller's folder, or that of `logberg up` (then all its controllers); without
    one it is ./logberg-data. Nothing in it is changed, and its node may be running.
    """


@command.command("dump")
@_FOLDER
@click.option("--from", "from_offset", type=int, help="First offset.")
@click.option("--to", "to_offset", type=int, help="Up to this offset, without it.")
@click.option("--show-secrets", is_flag=True, help="Show SCRAM keys and passwords as they are.")
@output_option
def dump_log(
    folder: Path,
    from_offset: int | None,
    to_offset: int | None,
    show_secrets: bool,
    output: str,
) -> None:
    """Print the batches in words; with --output json one document a line."""

    def show() -> None:
        for batch in dump(_folders(folder)[0], from_offset, to_offset, show_secrets=show_secrets):
            if output == "json":
                print_line(batch)
            else:
                _show_batch(batch)

    _expecting(show)


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
        fields = " ".join(f"{name}={_short(value)}" for name, value in record["data"].items())
        say(f"    {record['offset']}  {record['type']}  {fields}")


def _short(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ",".join(_short(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{k}:{_short(v)}" for k, v in value.items()) + "}"
    return "-" if value is None else str(value)


@command.command("verify")
@_FOLDERS
@output_option
def verify(folders: tuple[Path, ...], output: str) -> None:
    """Check frames, checksums, chain, offsets and epochs; name the first bad place.

    Several controllers are also held against each other. Exit 1 when anything is wrong.
    """
    found = _expecting(
        lambda: _with_progress("verifying", lambda p: agree(_with_marks(_folders(*folders)), p))
    )
    if output == "json":
        print_json(_agreement_json(found))
    else:
        _show_agreement(found)
    if not found.ok:
        raise Failure(_first_problem(found))


def _agreement_json(found: Agreement) -> dict[str, Any]:
    return {
        "ok": found.ok,
        "commonOffset": found.common_offset,
        "problem": found.problem,
        "nodes": [
            {
                "folder": node.folder,
                "ok": node.report.ok,
                "clusterId": node.report.cluster_id,
                "segments": node.report.segments,
                "batches": node.report.batches,
                "records": node.report.records,
                "historyFrom": node.report.log_start,
                "logEnd": node.report.log_end,
                "head": node.report.head.hex(),
                "firstBad": node.report.first_bad,
                "notes": node.report.notes,
            }
            for node in found.nodes
        ],
    }


def _show_agreement(found: Agreement) -> None:
    show(
        table(
            ["log", "verdict", "segments", "batches", "records", "log end", "head"],
            [
                (
                    Path(node.folder).name,
                    "sound" if node.report.ok else "DAMAGED",
                    node.report.segments,
                    node.report.batches,
                    node.report.records,
                    node.report.log_end,
                    node.report.head.hex()[:16],
                )
                for node in found.nodes
            ],
        )
    )
    for node in found.nodes:
        for note in node.report.notes:
            say(f"note: {Path(node.folder).name}: {note}")
    if found.ok and len(found.nodes) > 1:
        say(f"{len(found.nodes)} logs agree up to offset {found.common_offset}")


def _first_problem(found: Agreement) -> str:
    for node in found.nodes:
        bad = node.report.first_bad
        if bad is not None:
            return (
                f"{node.folder}/{bad.file}, byte {bad.position}, offset {bad.offset}: "
                f"{bad.sentence}"
            )
    return found.problem


@command.command("replay")
@_FOLDERS
@click.option("--to", "to_offset", type=int, help="State at this offset instead of the end.")
@output_option
def replay_log(folders: tuple[Path, ...], to_offset: int | None, output: str) -> None:
    """Replay to a state and its hash; several controllers' states must be equal."""

    def work(on_progress: Callable[[int, int], None]) -> list[Replayed]:
        nodes = _folders(*folders)
        end = to_offset
        if end is None and len(nodes) > 1:
            end = agree(_with_marks(nodes)).common_offset
        return [replay(each, to_offset=end, on_progress=on_progress) for each in nodes]

    states = _expecting(lambda: _with_progress("replaying", work))
    if output == "json":
        print_json([_state_json(state) for state in states])
    else:
        _show_states(states)
    if len({state.state_hash for state in states}) > 1:
        raise Failure("the states differ: `logberg log verify` names the first bad place.")


def _state_json(state: Replayed) -> dict[str, Any]:
    image = state.image
    return {
        "folder": state.folder,
        "clusterId": state.cluster_id,
        "fromOffset": state.from_offset,
        "offset": image.offset,
        "epoch": image.epoch,
        "time": utc(image.timestamp_ms),
        "batches": state.batches,
        "records": state.records,
        "brokers": len(image.cluster.brokers),
        "topics": len(image.topics.by_id),
        "partitions": len(image.topics.partitions),
        "stateHash": state.state_hash.hex(),
        "head": state.head.hex(),
        "notes": state.notes,
    }


def _show_states(states: list[Replayed]) -> None:
    for state in states:
        image = state.image
        show(
            facts(
                [
                    ("log", state.folder),
                    (
                        "state at",
                        f"offset {image.offset}, epoch {image.epoch}, {utc(image.timestamp_ms)}",
                    ),
                    ("replayed", f"{state.records} records in {state.batches} batches"),
                    (
                        "holds",
                        _holds(image),
                    ),
                    ("state hash", state.state_hash.hex()),
                ]
            )
        )
    if len(states) > 1 and len({state.state_hash for state in states}) == 1:
        say(f"{len(states)} logs, one state hash")


def _holds(image: MetadataImage) -> str:
    brokers, topics = len(image.cluster.brokers), len(image.topics.by_id)
    return f"{brokers} brokers, {topics} topics, {len(image.topics.partitions)} partitions"


def _folders(*named: Path) -> list[Path]:
    """All node folders that were named, or meant."""
    return [node for folder in named or (default_folder(),) for node in node_folders(folder)]


def _with_marks(folders: list[Path]) -> dict[Path, LogMark | None]:
    """Each folder with the mark up to which its manifest vouches for the ledger's bytes."""
    return {folder: _synced_mark(folder) for folder in folders}


def _synced_mark(folder: Path) -> LogMark | None:
    disk = ReadOnlyDisk(folder)
    if not disk.exists(MANIFEST):
        return None
    return LogMark.decode(decode_manifest(disk.read(MANIFEST)).mark_data)


def _expecting(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except BrokenPipeError:
        raise
    except _EXPECTED as error:
        raise Failure(str(error)) from None


def _with_progress(what: str, work: Callable[[Callable[[int, int], None]], Any]) -> Any:
    with progress(what) as on_progress:
        return work(on_progress)
