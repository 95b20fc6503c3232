"""`logberg kafka up`: our controllers and Kafka's own brokers on this machine until Ctrl-C."""

import asyncio
from pathlib import Path

import click

from logberg.cli.default_folder import DEFAULT_FOLDER
from logberg.cli.failure import Failure
from logberg.cli.output import say
from logberg.commands.shown_cluster import Running, run_until_stopped
from logberg.kafka.jars import DEFAULT_VERSION, TESTED_VERSIONS, kafka_jars
from logberg.kafka.java import java_for_kafka
from logberg.kafka.kafka_error import KafkaError
from logberg.kafka.local_kafka import KafkaCluster
from logberg.kafka.versions import first_levels_for
from logberg.local.cluster_file import LocalClusterError
from logberg.local.kafka_part import REPLICAS, KafkaWanted
from logberg.local.local_cluster import CONTROLLERS, LocalCluster

_READY_LIMIT_S = 180.0


@click.command("up")
@click.option(
    "--kafka-version",
    metavar="VERSION",
    help=f"Kafka's version. Tried: {', '.join(TESTED_VERSIONS)}. [default: {DEFAULT_VERSION}]",
)
@click.option(
    "--controllers", type=click.Choice(CONTROLLERS), help="Number of controllers. [default: 3]"
)
@click.option("--brokers", type=click.IntRange(1, 50), help="Number of brokers. [default: 3]")
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    default=DEFAULT_FOLDER,
    show_default=True,
    help="Folder of the cluster. `kafka up` resumes a cluster that it finds there.",
)
@click.option(
    "--port-base",
    type=click.IntRange(1024, 60_000),
    help="First of the ports that the cluster uses. [default: 19000]",
)
def command(
    kafka_version: str | None,
    controllers: int | None,
    brokers: int | None,
    data: Path,
    port_base: int | None,
) -> None:
    """Start our controllers and Kafka's own brokers on this machine, and show them until Ctrl-C.

    A new folder becomes a new cluster. The brokers are unmodified Apache Kafka: Maven fetches them
    at the first use of a version. Ctrl-C stops the brokers, then the controllers; the next
    `kafka up` on the same folder goes on with the same data.
    """
    try:
        cluster = _cluster(kafka_version, controllers, brokers, data, port_base)
        cluster.prepare()
        asyncio.run(
            run_until_stopped(
                cluster,
                lambda running: start_all(cluster, running),
                lambda: _announce(cluster),
                _READY_LIMIT_S,
            )
        )
    except (KafkaError, LocalClusterError) as error:
        first, *more = str(error).splitlines()
        raise Failure(first, more=more) from None


def _cluster(
    version: str | None,
    controllers: int | None,
    brokers: int | None,
    data: Path,
    port_base: int | None,
) -> KafkaCluster:
    """Refuse what can't work before anything is fetched. Raises LocalClusterError, KafkaError."""
    wanted = KafkaWanted(version, brokers, DEFAULT_VERSION)
    local = LocalCluster(data, controllers, 0, port_base, kafka=wanted)
    assert local.file.kafka is not None
    local.begin_at(first_levels_for(local.file.kafka.version))
    local.check()
    java = java_for_kafka()
    return KafkaCluster(local, kafka_jars(local.file.kafka.version, say=say), java)


async def start_all(cluster: KafkaCluster, running: Running) -> None:
    """Start the controllers, then the brokers; return when all are ready, or told to stop.

    Raises KafkaError, LocalClusterError.
    """
    for child in cluster.controllers.values():
        child.start()
    for broker in cluster.brokers.values():
        if running.stopping:
            return
        if not broker.formatted:
            say(f"Kafka formats the folder of {broker.name}")
            await asyncio.to_thread(broker.format, cluster.cluster_id)
        # Not in a thread: the kernel ends the broker with the thread that started it.
        broker.start()
    await running.ready(lambda: all(broker.is_up for broker in cluster.brokers.values()))


def _announce(cluster: KafkaCluster) -> None:
    folder, first = cluster.folder, cluster.bootstrap.partition(",")[0]
    data = "" if folder == DEFAULT_FOLDER.resolve() else f" --data {folder}"
    say(
        f"ready: {len(cluster.controllers)} controllers, {len(cluster.brokers)} brokers of Kafka "
        f"{cluster.version}; {folder / 'cluster.json'} says where"
    )
    say(f"Kafka's clients reach it at {cluster.bootstrap}. In another terminal:")
    tool = f"logberg kafka tool{data}"
    replicas = min(REPLICAS, len(cluster.brokers))
    for line in (
        (
            f"{tool} kafka-topics --create --topic orders --partitions 3 "
            f"--replication-factor {replicas}"
        ),
        f"seq 100 | {tool} kafka-console-producer --topic orders",
        f"{tool} kafka-console-consumer --topic orders --from-beginning --max-messages 100",
        f"logberg audit who {folder} topic:orders",
        f"logberg log dump {folder}",
    ):
        say(f"  {line}")
    if cluster.enforces:
        say(
            f"or as a user at {cluster.scram_bootstrap}, SASL_PLAINTEXT and SCRAM-SHA-256: logberg "
            "users scram set NAME, and logberg acls add User:NAME …"
        )
    else:
        say(f"or with any client of Kafka's: kcat -b {first} -L")
