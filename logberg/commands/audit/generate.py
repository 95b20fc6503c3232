"""`logberg audit generate`: a history of a made-up cluster, to try the audit on."""

from pathlib import Path
from typing import Any

import click

from audit.generated import GeneratedHistory, write_history
from audit.generated.rhythm import moment
from logberg.cli.failure import Failure
from logberg.cli.output import facts, output_option, print_json, say, show
from logberg.cli.progress import progress
from logberg.commands.audit.local_paths import LocalPath

_DAYS = 30.0


@click.command("generate")
@click.option(
    "--out",
    type=LocalPath(file_okay=False),
    required=True,
    help="Folder for the controllers' folders; new, or empty.",
)
@click.option(
    "--days",
    type=click.FloatRange(min=0, min_open=True),
    help="Days in the cluster's life. [default: 30, or what fits --records]",
)
@click.option(
    "--records", type=click.IntRange(min=1), help="How many records. [default: what fits --days]"
)
@click.option(
    "--seed", type=int, default=1, show_default=True, help="Another seed gives another history."
)
@click.option(
    "--replicas",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="How many controllers' folders to write, each with the same log.",
)
@click.option("--brokers", type=click.IntRange(min=3), help="How many brokers. [default: 12 or 24]")
@click.option(
    "--topics",
    type=click.IntRange(min=1),
    help="How many topics stay; load tests come and go beside them.",
)
@click.option("--open-transaction", is_flag=True, help="End in the middle of a large operation.")
@output_option
def command(
    out: Path,
    days: float | None,
    records: int | None,
    seed: int,
    replicas: int,
    brokers: int | None,
    topics: int | None,
    open_transaction: bool,
    output: str,
) -> None:
    """Write the history of a made-up cluster: deployments, failures, changes, an intrusion.

    The same arguments give the same bytes. The command prints what happened, and writes it with
    offsets to story.json, so that you can check the answers of other commands.
    """
    if days is None and records is None:
        days = _DAYS
    try:
        if out.exists() and any(out.iterdir()):
            raise Failure(f"{out} is not empty; name another folder with --out, or remove it.")
        with progress("generating") as on_progress:
            history = write_history(
                out,
                days=days,
                records=records,
                seed=seed,
                replicas=replicas,
                brokers=brokers,
                topics=topics,
                open_transaction=open_transaction,
                on_progress=on_progress,
            )
    except OSError as error:
        raise Failure(f"{out} can't be written: {error}") from None
    except ValueError as error:
        raise Failure(f"There is no such history: {error}.") from None
    if output == "json":
        print_json(_as_json(history))
    else:
        _show(history)


def _as_json(history: GeneratedHistory) -> dict[str, Any]:
    return {
        "folder": str(history.folder),
        "nodes": [str(node) for node in history.nodes],
        "clusterId": history.cluster_id,
        "seed": history.seed,
        "logEnd": history.log_end,
        "head": history.head.hex(),
        "batches": history.batches,
        "segments": history.segments,
        "checkpoints": history.checkpoints,
        "fromMs": history.first_ms,
        "toMs": history.last_ms,
        "brokers": history.brokers,
        "topics": history.topics,
        "partitions": history.partitions,
        "story": history.story,
    }


def _show(history: GeneratedHistory) -> None:
    size = f"{history.brokers} brokers, {history.topics} topics, {history.partitions} partitions"
    folders = "one folder" if len(history.nodes) == 1 else f"{len(history.nodes)} equal folders"
    disk = f"{folders}; segments: {history.segments}, checkpoints: {len(history.checkpoints)}"
    show(
        facts(
            [
                ("cluster", f"{history.cluster_id}, seed {history.seed}"),
                ("lived", f"{moment(history.first_ms)} to {moment(history.last_ms)}"),
                ("log", f"{history.log_end} records in {history.batches} batches"),
                ("on disk", disk),
                ("at the end", size),
                ("head", history.head.hex()),
            ]
        )
    )
    say("")
    for sentence in history.story:
        say(sentence)
    say("")
    say("Try next:")
    for line in _next(history):
        say(f"  {line}")


def _next(history: GeneratedHistory) -> tuple[str, ...]:
    """Return three commands that show something of this history."""
    folder = history.folder
    outage = history.of("rack_outage") or history.of("broker_died")
    offset = (outage[0].from_offset + 50) if outage else history.log_end // 2
    return (
        f"logberg audit findings {folder}",
        f"logberg audit serve {folder}",
        f"logberg audit state {folder} --at {offset}",
    )
