"""`logberg quorum recover`: what stopped controllers' folders hold, and a new generation from one.

Rule: without `--yes` the command only reads and says. Every folder that is named is locked for that
time, so a folder in which a process runs is refused.
"""

import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click

from audit.places.replicas import NoLogError, open_replicas
from audit.reading.dump import utc
from ledger.batch import Provenance
from ledger.errors import LedgerError
from logberg.cli.failure import Failure
from logberg.cli.login import login_here
from logberg.cli.output import facts, output_option, print_json, say, show, table
from logberg.cli.progress import progress_of_steps
from logberg.recovery.choosing import Choice, NoChoiceError, choose
from logberg.recovery.generations import OPERATION, UnknownVoterError
from logberg.recovery.recovering import RecoveryPlan, begin, plan_recovery
from logberg.recovery.survivors import NoSurvivorError, Survivor, read_survivor
from metadata.uuids import uuid_text
from quorum.journal.damage import DamagedError
from quorum.recovery.generation import NoEpochLeftError
from runtime.disk.interface import FolderInUseError
from runtime.disk.real import RealDisk
from runtime.randomness import from_system

_VOTER = re.compile(
    r"(?P<id>\d{1,9})(@(?P<host>[^=@]+):(?P<port>\d{1,5}))?(=(?P<folder>.+))?", re.DOTALL
)
_PORT_MAX = 65535
_EXPECTED = (
    NoSurvivorError,
    NoChoiceError,
    NoLogError,
    UnknownVoterError,
    NoEpochLeftError,
    FolderInUseError,
    DamagedError,
    LedgerError,
    OSError,
)


class NamedVoter(NamedTuple):
    """A voter as it was named."""

    node_id: int
    address: tuple[str, int] | None
    folder: Path | None


class _VoterType(click.ParamType[NamedVoter]):
    name = "id[@host:port][=folder]"

    def convert(self, value: Any, param: Any, ctx: Any) -> NamedVoter:
        named = _VOTER.fullmatch(str(value))
        if named is None:
            self.fail(f"{value!r} is no voter: write ID, ID=FOLDER or ID@HOST:PORT=FOLDER")
        address = None if named["host"] is None else (named["host"], int(named["port"]))
        if address is not None and address[1] > _PORT_MAX:
            self.fail(f"{value!r} names port {address[1]}, and ports end at {_PORT_MAX}")
        folder = None if named["folder"] is None else Path(named["folder"])
        return NamedVoter(int(named["id"]), address, folder)


@click.command("recover")
@click.argument("folders", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option(
    "--voter",
    "voters",
    type=_VoterType(),
    multiple=True,
    help="A voter of the new generation. With a folder, that is made for it: carry it to the "
    "voter's machine. The address is needed if the log has none. [default: the node of the chosen "
    "folder alone]",
)
@click.option("--reason", default="", help="What happened; the log keeps it. Needed with --yes.")
@click.option("--by", default="", help="Who recovers the cluster. [default: your user name here]")
@click.option("--yes", is_flag=True, help="Begin the new generation. Without it, nothing changes.")
@click.option(
    "--force", is_flag=True, help="Also if a majority of the voters' folders is here and sound."
)
@output_option
def recover(
    folders: tuple[Path, ...],
    voters: tuple[NamedVoter, ...],
    reason: str,
    by: str,
    yes: bool,
    force: bool,
    output: str,
) -> None:
    """Begin a new generation of the cluster from what is left of it.

    FOLDERS are the folders of stopped controllers, all that are left, or one that holds them. The
    command says what each one holds, which is the most complete, and what may be lost. With --yes
    it begins a new generation from that folder. Nodes of the old generation are refused from then.
    """
    if yes and not reason.strip():
        raise click.UsageError("--yes needs --reason: the log of the new generation keeps it.")
    try:
        with ExitStack() as stack:
            survivors = _read(folders, stack)
            choice = choose(survivors)
            plan = plan_recovery(
                choice,
                survivors,
                {each.node_id: each.address for each in voters} or {choice.chosen.node_id: None},
                now_ms=time.time_ns() // 1_000_000,
                who=_who(by, reason.strip()),
                random=from_system(),
            )
            new_folders = _new_folders(choice, voters)
            if output != "json":
                _show(survivors, choice)
            if yes:
                _begin(plan, choice, new_folders, force=force, stack=stack)
            if output == "json":
                print_json(_as_json(survivors, choice, plan, begun=yes))
            else:
                _show_what_next(choice, plan, new_folders, begun=yes)
    except _EXPECTED as error:
        raise Failure(str(error)) from None


def _who(by: str, reason: str) -> Provenance:
    return Provenance(
        principal=f"User:{by or login_here()}",
        auth_method="offline",
        client_id=f"logberg quorum recover on {os.uname().nodename}",
        operation=OPERATION,
        reason=reason,
    )


def _read(folders: Sequence[Path], stack: ExitStack) -> list[Survivor]:
    """Lock and read the folders."""
    paths = list(dict.fromkeys(path for folder in folders for path in _controllers_in(folder)))
    with progress_of_steps("reading") as on_step:
        survivors = []
        for path in paths:
            disk = stack.enter_context(_locked(path))
            survivors.append(read_survivor(str(path), disk, partial(on_step, str(path))))
    return survivors


def _controllers_in(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise NoLogError(f"{folder} is not there, or is no folder.")
    if (folder / "journal").is_dir():
        return [folder]
    return [Path(replica.location) for replica in open_replicas(str(folder))]


@contextmanager
def _locked(path: Path) -> Iterator[RealDisk]:
    disk = RealDisk(path)
    try:
        disk.lock()
        yield disk
    finally:
        disk.close()


def _new_folders(choice: Choice, voters: Sequence[NamedVoter]) -> dict[int, Path]:
    """Return the folders that are to be made, by node id. Raises NoChoiceError."""
    new: dict[int, Path] = {}
    for node_id, _, folder in voters:
        if node_id == choice.chosen.node_id:
            continue
        if folder is None:
            raise NoChoiceError(
                f"voter {node_id} needs a folder that holds the log: name one that is not there "
                f"yet (--voter {node_id}=FOLDER), and carry it to that voter's machine"
            )
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise NoChoiceError(f"{folder} is not empty: name a folder that is not there yet")
        new[node_id] = folder
    return new


def _begin(
    plan: RecoveryPlan,
    choice: Choice,
    new_folders: Mapping[int, Path],
    *,
    force: bool,
    stack: ExitStack,
) -> None:
    if choice.nothing_lost and not force:
        raise NoChoiceError(
            "a majority of the voters' folders is here and sound: start these controllers, and "
            "nothing is lost. To begin a new generation all the same, add --force"
        )
    _refuse_other_owner(Path(choice.chosen.name))
    disks = {node_id: RealDisk(folder) for node_id, folder in new_folders.items()}
    for disk in disks.values():
        stack.callback(disk.close)
    begin(plan, disks)


def _refuse_other_owner(folder: Path) -> None:
    """Refuse to write files that the node could not read. Raises NoChoiceError, OSError."""
    owner = folder.stat().st_uid
    if owner != os.geteuid():
        raise NoChoiceError(
            f"{folder} belongs to user {owner}, and you are user {os.geteuid()}: its node could "
            f"not read the new files. Run this command as that user: sudo -u '#{owner}' logberg …"
        )


# -- what is said --------------------------------------------------------------------------------


def _show(survivors: Sequence[Survivor], choice: Choice) -> None:
    show(
        table(
            [
                "folder",
                "node",
                "generation",
                "epoch",
                "vote",
                "last entry",
                "committed",
                "log end",
                "head",
            ],
            [
                (
                    each.name,
                    each.node_id,
                    each.journal.generation.number,
                    each.journal.epoch,
                    each.journal.voted_for or "-",
                    f"{each.journal.last_index} of epoch {each.journal.last_epoch}",
                    each.certain_end,
                    each.end.log_end,
                    each.end.head.hex()[:16],
                )
                for each in survivors
            ],
        )
    )
    for each in survivors:
        for what in filter(None, (each.journal.damage, each.ledger_damage)):
            say(f"DAMAGED: {each.name}: {what}")
    say(f"most complete: {choice.chosen.name}: {choice.why}")
    for other, why in choice.rejected:
        say(f"not chosen: {other.name}: {why}")
    say("")
    for line in _verdict(choice):
        say(line)


def _verdict(choice: Choice) -> list[str]:
    last = utc(choice.chosen.end.timestamp_ms)
    start, end = choice.chosen.log_start, choice.certain_end
    said = [f"certain: offsets {start} to {end - 1}: they were committed"]
    if end == start:
        said = ["certain: nothing: no folder knows of a committed record"]
    if choice.certain_end < choice.end:
        said.append(
            f"probable: offsets {choice.certain_end} to {choice.end - 1}: nobody here knows "
            "whether they were committed; they become part of the log"
        )
    said.append(f"last change here: {last}")
    if choice.nothing_lost:
        said.append(
            "nothing is lost: a majority of the voters' folders is here and sound. Start these "
            "controllers; you need no recovery"
        )
        said.append(
            "note: this holds if these are the folders themselves. If all are older copies, "
            "what came after the copies were made is lost, and nothing here can show it"
        )
    said += [f"may be lost: {what}" for what in choice.losses]
    said += [f"note: {what}" for what in choice.notes]
    return said


def _show_what_next(
    choice: Choice, plan: RecoveryPlan, new_folders: Mapping[int, Path], *, begun: bool
) -> None:
    start = plan.generation.start
    names = ", ".join(str(voter.node_id) for voter in start.voters)
    say("")
    if not begun:
        say(
            f"nothing was changed. With --yes and --reason, generation {start.generation.number} "
            f"begins in {choice.chosen.name}, with the voters {names}"
        )
        return
    show(
        facts(
            [
                ("generation", f"{start.generation.number} has begun, in epoch {start.epoch}"),
                ("voters", names),
                ("recorded at", f"offset {plan.generation.first_batch.header.base_offset}"),
                ("old journal", f"{choice.chosen.name}/{plan.keep}"),
            ]
        )
    )
    for node_id, folder in new_folders.items():
        say(f"carry {folder} to the machine of node {node_id}, as that node's folder")
    say(f"start node {choice.chosen.node_id} on {choice.chosen.name}")
    say(
        "every other folder of before is of the old generation, and is refused: move it away, and "
        "start its node with an empty one, which observes"
    )


def _as_json(
    survivors: Sequence[Survivor], choice: Choice, plan: RecoveryPlan, *, begun: bool
) -> dict[str, Any]:
    start = plan.generation.start
    why_not = {other.name: why for other, why in choice.rejected}
    return {
        "folders": [
            {
                "folder": each.name,
                "clusterId": each.journal.cluster_id,
                "nodeId": each.node_id,
                "directoryId": uuid_text(each.journal.directory_id),
                "generation": each.journal.generation.number,
                "epoch": each.journal.epoch,
                "votedFor": each.journal.voted_for or None,
                "lastIndex": each.journal.last_index,
                "lastEpoch": each.journal.last_epoch,
                "committedOffset": each.certain_end,
                "logEnd": each.end.log_end,
                "historyFrom": each.log_start,
                "head": each.end.head.hex(),
                "damage": each.damage or None,
                "chosen": each is choice.chosen,
                "why": choice.why if each is choice.chosen else why_not.get(each.name, ""),
            }
            for each in survivors
        ],
        "certainEnd": choice.certain_end,
        "probableEnd": choice.end,
        "absentVoters": list(choice.absent),
        "nothingLost": choice.nothing_lost,
        "losses": list(choice.losses),
        "notes": list(choice.notes),
        "begun": begun,
        "generation": start.generation.number,
        "voters": [voter.node_id for voter in start.voters],
        "firstOffset": plan.generation.first_batch.header.base_offset,
        "kept": f"{choice.chosen.name}/{plan.keep}",
    }
