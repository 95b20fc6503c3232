"""`logberg up`: a cluster on this machine until Ctrl-C."""

import asyncio
from pathlib import Path

import click

from logberg.cli.default_folder import DEFAULT_FOLDER, or_old_folder
from logberg.cli.failure import Failure
from logberg.cli.feature_levels import first_levels
from logberg.cli.output import say
from logberg.commands.shown_cluster import Running, run_until_stopped
from logberg.local.cluster_file import LocalClusterError
from logberg.local.local_cluster import CONTROLLERS, LocalCluster
from logberg.processes.settings.shared_settings import AUTHORIZATION

_READY_LIMIT_S = 60.0


@click.command("up")
@click.option(
    "--controllers", type=click.Choice(CONTROLLERS), help="Number of controllers. [default: 3]"
)
@click.option("--brokers", type=click.IntRange(0, 50), help="Number of broker agents. [default: 3]")
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    default=DEFAULT_FOLDER,
    show_default=True,
    callback=or_old_folder,
    help="Folder of the cluster. `up` resumes a cluster that it finds there.",
)
@click.option(
    "--port-base",
    type=click.IntRange(1024, 60_000),
    help="First of the ports that the cluster uses. [default: 19000]",
)
@click.option(
    "--token",
    "tokens",
    multiple=True,
    metavar="PRINCIPAL",
    help="Write a token for this principal. Broker:7 gets tokens/Broker-7.token. Repeatable.",
)
@click.option(
    "--feature",
    "features",
    multiple=True,
    metavar="FEATURE=LEVEL",
    callback=first_levels,
    help="Level at which a new cluster begins; by default the newest. Repeatable.",
)
@click.option(
    "--kafka",
    is_flag=True,
    help="Let the brokers listen for Kafka's clients. [default port: 19691]",
)
@click.option(
    "--authorization",
    type=click.Choice(AUTHORIZATION),
    help="Whether requests need rights; User:admin may do everything. [default: on, or as before]",
)
def command(
    controllers: int | None,
    brokers: int | None,
    data: Path,
    port_base: int | None,
    tokens: tuple[str, ...],
    features: dict[str, int],
    *,
    kafka: bool,
    authorization: str | None,
) -> None:
    """Start controllers and broker agents on this machine, and show them until Ctrl-C.

    A new folder becomes a new cluster; no other command has to run first. Ctrl-C stops the brokers
    in order, then the controllers.
    """
    try:
        cluster = LocalCluster(
            data,
            controllers,
            brokers,
            port_base,
            tokens=tokens,
            features=features,
            kafka_clients=kafka,
            authorization=authorization,
        )
        cluster.prepare()
        asyncio.run(
            run_until_stopped(
                cluster,
                lambda running: _start(cluster, running),
                lambda: _announce(cluster),
                _READY_LIMIT_S,
            )
        )
    except LocalClusterError as error:
        first, *more = str(error).splitlines()
        raise Failure(first, more=more) from None


async def _start(cluster: LocalCluster, running: Running) -> None:
    for child in cluster.children:
        child.start()
    await running.ready()


def _announce(cluster: LocalCluster) -> None:
    say(
        f"ready: {len(cluster.controllers)} controllers, {len(cluster.brokers)} brokers; "
        f"{cluster.folder / 'cluster.json'} says where. In another terminal: logberg status"
    )
    if cluster.clients_addresses:
        say(
            f"Kafka's clients: bootstrap.servers={','.join(cluster.clients_addresses)} "
            "security.protocol=SASL_SSL sasl.mechanism=PLAIN sasl.username=admin; the password "
            f"is in {cluster.file.token_file}, the CA in {cluster.file.ca}"
        )
