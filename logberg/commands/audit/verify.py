"""`logberg audit verify`: proof that nobody tampered, or the place where somebody did."""

import re
from typing import Any

import click

from audit.places.replicas import Replica, open_all
from audit.questions.compare import Comparison, compare
from audit.questions.log_replay import KnownReplays
from audit.questions.verification import VerificationResult, verify_replica
from logberg.cli.failure import Failure
from logberg.cli.output import output_option, print_json, say, show, table
from logberg.cli.progress import progress
from logberg.commands.audit.divergence_output import comparison_json, show_divergences
from logberg.commands.audit.failures import failing, print_notes
from runtime.loop.collection import resting

_HEAD = re.compile(r"([0-9]{1,19}):([0-9a-fA-F]{64})")


@click.command("verify")
@click.argument("where", nargs=-1, required=True)
@click.option(
    "--head",
    "heads",
    multiple=True,
    metavar="OFFSET:HASH",
    help="A chain hash written down earlier, which the logs must contain. Repeatable.",
)
@click.option("--keep-going", is_flag=True, help="Report everything, not just the first problem.")
@click.option("--whole", is_flag=True, help="Exit 1 also if the history doesn't begin at offset 0.")
@click.option("--no-replay", is_flag=True, help="Don't compare checkpoints with a replay.")
@output_option
def command(
    where: tuple[str, ...],
    heads: tuple[str, ...],
    keep_going: bool,
    whole: bool,
    no_replay: bool,
    output: str,
) -> None:
    """Check frames, checksums, hash chain, offsets, epochs, and checkpoints by replay.

    Several logs are also compared with each other. Exit 1 if anything is wrong. If the node is
    running, an unfinished batch at the log's end is only a note.
    """
    known = dict(map(_head, heads))
    with resting(), failing():
        replicas = open_all(where)
        found, replays = [], KnownReplays()
        for replica in replicas:
            with progress(f"verifying {replica.name}") as on_progress:
                found.append(
                    verify_replica(
                        replica,
                        known=known,
                        keep_going=keep_going,
                        with_replay=not no_replay,
                        whole=whole,
                        replays=replays,
                        on_progress=on_progress,
                    )
                )
        compared = _compared(replicas, found)
    if output == "json":
        print_json(_json(found, compared))
    else:
        _show(found, compared, keep_going=keep_going)
    problems = [f"{each.location}: {problem}" for each in found for problem in each.problems]
    if compared is not None and compared.divergences:
        problems.append(compared.problem)
    if problems:
        raise Failure(problems[0])


def _head(text: str) -> tuple[int, bytes]:
    found = _HEAD.fullmatch(text)
    if not found:
        raise click.BadParameter(
            f"{text!r}: write an offset, a colon and 64 hexadecimal digits. "
            "`logberg audit state` shows the chain head."
        )
    return int(found[1]), bytes.fromhex(found[2])


def _compared(replicas: list[Replica], found: list[VerificationResult]) -> Comparison | None:
    reports = {each.name: each.report for each in found if each.report is not None}
    return compare(replicas, reports) if len(replicas) > 1 else None


def _show(
    found: list[VerificationResult], compared: Comparison | None, *, keep_going: bool
) -> None:
    show(
        table(
            ["log", "verdict", "batches", "records", "log end", "head", "checkpoints"],
            [_row(each) for each in found],
        )
    )
    for each in found:
        print_notes(f"{each.name}: {note}" for note in each.notes)
        if keep_going:
            for problem in each.problems:
                say(f"{each.name}: {problem.kind}: {problem}")
        if each.state_hash:
            said = f"replayed to offset {each.replayed_to}, state hash {each.state_hash[:32].hex()}"
            proved = f", {each.proved} of {each.checkpoints} checkpoints proved"
            say(f"{each.name}: {said}{proved if each.checkpoints else ''}")
    if compared is not None:
        show_divergences(compared)


def _row(each: VerificationResult) -> tuple[Any, ...]:
    verdict = "sound" if each.ok else "DAMAGED"
    report = each.report
    if report is None:
        return each.name, verdict, "-", "-", "-", "-", each.checkpoints
    head = report.head.hex()[:16]
    return (
        each.name,
        verdict,
        report.batches,
        report.records,
        report.log_end,
        head,
        each.checkpoints,
    )


def _json(found: list[VerificationResult], compared: Comparison | None) -> dict[str, Any]:
    return {
        "ok": all(each.ok for each in found) and not (compared and compared.divergences),
        "logs": [_verified_json(each) for each in found],
        "comparison": comparison_json(compared) if compared is not None else None,
    }


def _verified_json(each: VerificationResult) -> dict[str, Any]:
    report = each.report
    ledger: dict[str, Any] = {}
    if report is not None:
        ledger = {
            "clusterId": report.cluster_id,
            "segments": report.segments,
            "batches": report.batches,
            "records": report.records,
            "historyFrom": report.log_start,
            "logEnd": report.log_end,
            "head": report.head.hex(),
        }
    return {
        "name": each.name,
        "location": each.location,
        "ok": each.ok,
        **ledger,
        "checkpoints": each.checkpoints,
        "checkpointsProved": each.proved,
        "replayedTo": each.replayed_to,
        "stateHash": each.state_hash[:32].hex() or None,
        "problems": each.problems,
        "notes": each.notes,
    }
