"""`logberg demo`: check the main guarantees with real processes on loopback."""

import asyncio
import os
import shutil
import signal
import sys
import time
from pathlib import Path

import click
from rich.text import Text

from logberg.cli.failure import Failure
from logberg.cli.output import say
from logberg.client.client import LogbergClient
from logberg.commands.demo_plans import DemoPlan, new_folder, plan_with_agents, plan_with_kafka
from logberg.commands.demo_story import EXPECTED_ERRORS, Line
from logberg.kafka.kafka_error import KafkaError
from logberg.local.cluster_file import LocalClusterError


@click.command("demo")
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the demo cluster. [default: a new folder in the system's temporary folder]",
)
@click.option(
    "--kafka",
    "with_kafka",
    is_flag=True,
    help="Let the brokers be Apache Kafka's own; needs Java 17 and Maven.",
)
def command(data: Path | None, with_kafka: bool) -> None:
    """Start a cluster of real processes, make it fail over, and check the main guarantees.

    Exit 0 if every guarantee held. The command stops all its processes, and keeps the folder with
    their output.
    """
    folder = data or new_folder()
    began = time.monotonic()
    try:
        plan = (plan_with_kafka if with_kafka else plan_with_agents)(folder)
        say(Text("Logberg", "bold"), f": three controllers, {plan.brokers}, in {folder}")
        say("")
        proof = asyncio.run(_tell(plan))
    except (KafkaError, LocalClusterError) as error:
        first, *more = str(error).splitlines()
        raise Failure(first, more=more) from None
    except EXPECTED_ERRORS as error:
        say("  ", Text("✗", "red"), f" {error}")
        raise Failure(
            f"the claim above did not hold; the processes' output is in {folder / 'output'}"
        ) from None
    say("")
    say(Text("proved", "bold green"), f": {proof}, in {time.monotonic() - began:.0f} s")
    for report in plan.reports():
        say(f"report: {report}")
    say(f"kept: {folder}. Try next:")
    for line in plan.try_next:
        say(f"  {_own_name()} {line}")


def _own_name() -> str:
    """How to call this command from here: its path, unless it is on PATH."""
    if shutil.which("logberg") is not None:
        return "logberg"
    return os.path.relpath(Path(sys.argv[0]).with_name("logberg"))


async def _tell(plan: DemoPlan) -> str:
    def tell(line: Line, seconds: float) -> None:
        say("  ", Text("✓", "green"), " ", *line, " ", Text(f"({seconds:.1f} s)", "dim"))

    task = asyncio.current_task()
    assert task is not None
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, task.cancel)
    cluster = plan.cluster
    try:
        access = cluster.file.access()
        async with LogbergClient(cluster.controller_urls, access, 20.0, "logberg-demo") as client:
            story = plan.story(client, tell)
            await story.tell()
            return story.proof
    except asyncio.CancelledError:
        say("  interrupted; stopping everything")
        raise KeyboardInterrupt from None
    finally:
        cluster.stop(5.0)
        cluster.write_cluster_file()
