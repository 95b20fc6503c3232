"""The two demonstrations: with our own agents as brokers, and with Apache Kafka's.

A plan says what is prepared before the first step, which steps are told, and what comes after.
"""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from logberg.cli.failure import Failure
from logberg.cli.output import say
from logberg.client.client import LogbergClient
from logberg.commands.demo_audit import WEEK, make_reports
from logberg.commands.demo_kafka_steps import TOPIC, KafkaDemoSteps
from logberg.commands.demo_steps import DemoSteps
from logberg.commands.demo_story import DemoCluster, DemoStory, Say
from logberg.kafka.jars import DEFAULT_VERSION, TOOLS, kafka_jars
from logberg.kafka.java import java_for_kafka
from logberg.kafka.local_kafka import KafkaCluster
from logberg.kafka.tools import KafkaTools
from logberg.kafka.versions import first_levels_for
from logberg.local.kafka_part import KafkaWanted
from logberg.local.local_cluster import LocalCluster, Timing
from logberg.local.ports import free_port_base

_TIMING = Timing(session_ms=3_000, heartbeat_ms=500)


class DemoPlan(NamedTuple):
    """One demonstration; its cluster is prepared."""

    cluster: DemoCluster
    brokers: str
    """What the brokers are, for the first line."""
    story: Callable[[LogbergClient, Say], DemoStory]
    reports: Callable[[], Sequence[Path]]
    try_next: tuple[str, ...]
    """Arguments of `logberg`, for the last lines."""


def plan_with_agents(folder: Path) -> DemoPlan:
    """Return the plan of `logberg demo`. Raises Failure, LocalClusterError."""
    cluster = LocalCluster(folder, 3, 3, free_port_base(), _TIMING)
    _refuse_resumed(folder, resumed=cluster.resumed)
    cluster.prepare()
    return DemoPlan(
        cluster,
        "three brokers",
        lambda client, tell: DemoSteps(cluster, client, tell),
        lambda: make_reports(folder),
        (
            f"log dump {folder}",
            f"log verify {folder}",
            f"up --data {folder}",
            f"audit serve {folder / WEEK}",
        ),
    )


def plan_with_kafka(folder: Path) -> DemoPlan:
    """Return the plan of `logberg demo --kafka`. Raises Failure, KafkaError, LocalClusterError."""
    wanted = KafkaWanted(DEFAULT_VERSION, 3, DEFAULT_VERSION)
    levels = first_levels_for(DEFAULT_VERSION)
    local = LocalCluster(folder, 3, 0, free_port_base(), features=levels, kafka=wanted)
    _refuse_resumed(folder, resumed=local.resumed)
    java = java_for_kafka()
    # Kafka's tools come with all that its brokers need.
    jars = kafka_jars(DEFAULT_VERSION, wanted=TOOLS, say=say)
    cluster = KafkaCluster(local, jars, java)
    cluster.prepare()
    tools = KafkaTools(jars, java, folder / "config")
    return DemoPlan(
        cluster,
        f"three brokers of Apache Kafka {DEFAULT_VERSION}",
        lambda client, tell: KafkaDemoSteps(cluster, client, tell, tools),
        list,
        (
            f"audit who {folder} topic:{TOPIC}",
            f"log verify {folder}",
            f"kafka up --data {folder}",
        ),
    )


def new_folder() -> Path:
    """Return a new folder for a demonstration."""
    return Path(tempfile.mkdtemp(prefix="logberg-demo-"))


def _refuse_resumed(folder: Path, *, resumed: bool) -> None:
    if resumed:
        raise Failure(f"{folder} holds a cluster already; name a new folder with --data.")
