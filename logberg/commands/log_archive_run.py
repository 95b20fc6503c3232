"""`logberg log archive run`: controllers move closed segments now, and not at their next look."""

import time
from collections.abc import Sequence
from typing import Final

import click

from logberg.cli.connection_options import ClusterConnection, cluster_options
from logberg.cli.failure import Failure
from logberg.cli.output import print_json, show, table
from logberg.client.client import LogbergClient
from logberg.client.client_errors import ClientError
from logberg.client.waiting_change import REASON
from metadata.messages.archive import RunArchiveReply

_PATH: Final = "/v1/archive/run"
_ANSWER_S: Final = 10.0
"""A controller answers after four seconds, also while it goes on."""


@click.command("run")
@click.option("--reason", default="", help="Why you ask. The controllers' own logs keep the text.")
@click.option(
    "--wait",
    "wait_s",
    type=click.FloatRange(min=0),
    default=600.0,
    show_default=True,
    help="Seconds to wait until all are done.",
)
@cluster_options
def run_archive(*, reason: str, wait_s: float, cluster: ClusterConnection, output: str) -> None:
    """Let the controllers move closed segments to the archive now.

    Each of --controllers is asked, one after the other, and moves what its settings don't keep.
    Without this command they look every archive.every_ms.
    """
    done, failed = cluster.ask(
        lambda client: _asked_all(client, cluster.urls, reason, time.monotonic() + wait_s)
    )
    if output == "json":
        print_json(done)
    elif done:
        show(
            table(
                ["controller", "archive", "moved", "bytes", "what stays"],
                [
                    (each.node_id, each.place, each.segments, each.bytes, each.note or "-")
                    for each in done
                ],
            )
        )
    if failed:
        raise Failure("; ".join(failed))


async def _asked_all(
    client: LogbergClient, urls: Sequence[str], reason: str, until: float
) -> tuple[list[RunArchiveReply], list[str]]:
    """Return what each controller has done, and why others have not."""
    done: list[RunArchiveReply] = []
    failed: list[str] = []
    for url in urls:
        try:
            reply = await _run(client, url, reason, until)
        except ClientError as error:
            failed.append(f"{url}: {error} [{error.code}]")
            continue
        done.append(reply)
        if not reply.ended:
            failed.append(
                f"controller {reply.node_id} has moved {reply.segments} segments to {reply.place} "
                "so far, and goes on by itself; ask again to wait longer"
            )
    return done, failed


async def _run(client: LogbergClient, url: str, reason: str, until: float) -> RunArchiveReply:
    """Ask one controller, and wait until it is done. Raises ClientError."""
    query: dict[str, str] = {}
    while True:
        reply = await client.from_one(
            url,
            _PATH,
            RunArchiveReply,
            query,
            _ANSWER_S,
            {REASON: reason} if reason else {},
            method="POST",
        )
        if reply.ended or time.monotonic() >= until:
            return reply
        query = {"run": str(reply.run)}
