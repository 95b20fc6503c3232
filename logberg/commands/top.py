"""`logberg top`: the cluster as it changes, in a terminal."""

import asyncio
import shutil
import sys

import click
from rich.console import Console, Group
from rich.live import Live

from logberg.cli.connection_options import ClusterConnection, cluster_options
from logberg.cli.failure import Failure
from logberg.cli.output import drawn, print_json, show
from logberg.client.client import LogbergClient
from logberg.operating.top_frame import TopView, frame
from logberg.operating.top_reading import TopReading


@click.command("top")
@click.option("--once", is_flag=True, help="Show one frame and end; also without a terminal.")
@click.option(
    "--every",
    type=click.FloatRange(0.2, 60),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="Time between two frames.",
)
@cluster_options
def command(*, once: bool, every: float, cluster: ClusterConnection, output: str) -> None:
    """Watch controllers, brokers and changes as they commit; Ctrl-C ends it.

    Lag is counted in entries of the journal for controllers, and in records for brokers.
    """
    if output == "json" or once:
        moment = cluster.ask(lambda client: TopReading(client, cluster.urls).read())
        if output == "json":
            print_json(_json(moment))
        else:
            show(*frame(moment, shutil.get_terminal_size().lines))
        return
    if not sys.stdout.isatty():
        raise Failure("stdout is no terminal; --once shows one frame, `logberg watch` one resource")
    cluster.ask(lambda client: _watch(client, cluster.urls, every))


async def _watch(client: LogbergClient, urls: tuple[str, ...], every_s: float) -> None:
    screen = Console(highlight=False)
    reading = TopReading(client, urls)
    with Live(console=screen, auto_refresh=False, screen=True) as live:
        while True:
            parts = frame(await reading.read(), screen.height)
            live.update(Group(*map(drawn, parts)), refresh=True)
            await asyncio.sleep(every_s)


def _json(moment: TopView) -> dict[str, object]:
    return {
        **moment.view.to_json(),
        "quorum": moment.quorum,
        "changes": [
            {
                "offset": change.offset,
                "timestampMs": change.timestamp_ms,
                "principal": change.principal,
                "operation": change.operation,
                "records": [record.type for record in change.records],
            }
            for change in moment.changes
        ],
    }
