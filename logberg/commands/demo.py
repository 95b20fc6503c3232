"""`logberg demo`: check the main guarantees with real processes on loopback."""

import asyncio
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import click
from rich.text import Text

from logberg.cli.failure import Failure
from logberg.cli.output import say
from logberg.client.client import LogbergClient
from logberg.commands.demo_audit import WEEK, make_reports
from logberg.commands.demo_steps import EXPECTED_ERRORS, DemoSteps, Line
from logberg.local.cluster_file import LocalClusterError
from logberg.local.local_cluster import LocalCluster, Timing
from logberg.local.ports import free_port_base

_TIMING = Timing(session_ms=3_000, heartbeat_ms=500)


@click.command("demo")
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the demo cluster. [default: a new folder in the system's temporary folder]",
)
def command(data: Path | None) -> None:
    """Start a cluster of real processes, make it fail over, and check the main guarantees.

    Exit 0 if every guarantee held. The command stops all its processes, and keeps the folder with
    their output.
    """
    folder = data or Path(tempfile.mkdtemp(prefix="logberg-demo-"))
    began = time.monotonic()
    try:
        cluster = LocalCluster(folder, 3, 3, free_port_base(), _TIMING)
        if cluster.resumed:
            raise Failure(f"{folder} holds a cluster already; name a new folder with --data.")
        cluster.prepare()
        say(Text("Logberg", "bold"), f": three controllers, three brokers, in {folder}")
        say("")
        proof = asyncio.run(_tell(cluster))
    except LocalClusterError as error:
        first, *more = str(error).splitlines()
        raise Failure(first, more=more) from None
    except EXPECTED_ERRORS as error:
        say("  ", Text("✗", "red"), f" {error}")
        raise Failure(
            f"the claim above did not hold; the processes' output is in {folder / 'output'}"
        ) from None
    say("")
    say(Text("proved", "bold green"), f": {proof}, in {time.monotonic() - began:.0f} s")
    for report in make_reports(folder):
        say(f"report: {report}")
    say(f"kept: {folder}. Try next:")
    for line in (
        f"{_own_name()} log dump {folder}",
        f"{_own_name()} log verify {folder}",
        f"{_own_name()} up --data {folder}",
        f"{_own_name()} audit serve {folder / WEEK}",
    ):
        say(f"  {line}")


def _own_name() -> str:
    """How to call this command from here: its path, unless it is on PATH."""
    if shutil.which("logberg") is not None:
        return "logberg"
    return os.path.relpath(Path(sys.argv[0]).with_name("logberg"))


async def _tell(cluster: LocalCluster) -> str:
    def tell(line: Line, seconds: float) -> None:
        say("  ", Text("✓", "green"), " ", *line, " ", Text(f"({seconds:.1f} s)", "dim"))

    task = asyncio.current_task()
    assert task is not None
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, task.cancel)
    try:
        access = cluster.file.access()
        async with LogbergClient(cluster.controller_urls, access, 20.0, "logberg-demo") as client:
            steps = DemoSteps(cluster, client, tell)
            await steps.tell()
            return steps.proof
    except asyncio.CancelledError:
        say("  interrupted; stopping everything")
        raise KeyboardInterrupt from None
    finally:
        cluster.stop(5.0)
        cluster.write_cluster_file()
