"""`logberg import`: what another store holds becomes this cluster's state, as one change."""

from pathlib import Path
from typing import Final

import click

from logberg.cli.connection_options import ChangeOptions, ClusterConnection, change_options
from logberg.cli.failure import Failure
from logberg.cli.suggesting_group import SuggestingGroup
from logberg.commands.bridging import BRIDGE_OPTIONS, BridgeOptions, run_bridge
from logberg.commands.import_steps import carry_out
from logberg.commands.import_stores import (
    KEY_OPTIONS,
    SKIP_MALFORMED,
    SOURCE,
    cassandra,
    consul,
    etcd,
    import_keys,
)
from logberg.importing.found_keys import StoreReading
from logberg.importing.kafka_layout import read_kafka
from logberg.importing.source_error import SourceError
from logberg.importing.store_url import KeyLayout
from logberg.importing.tree_file import read_tree_file
from logberg.importing.znodes import ZnodeTree
from logberg.importing.zookeeper_keys import keys_of_nodes
from logberg.importing.zookeeper_source import ZooKeeperSource

_KAFKA: Final = "kafka"


@click.group("import", cls=SuggestingGroup)
def command() -> None:
    """Take over what another store holds, as one change."""


@command.command("zookeeper")
@SOURCE
@click.option(
    "--layout",
    type=click.Choice([_KAFKA, *(each.value for each in KeyLayout)]),
    default=_KAFKA,
    show_default=True,
    help="Who wrote the nodes: Kafka, any program, or this library's coordination client.",
)
@KEY_OPTIONS
@SKIP_MALFORMED
@BRIDGE_OPTIONS
@change_options
def zookeeper(
    *,
    source: str,
    layout: str,
    prefix: str,
    into: str,
    skip_malformed: bool,
    bridge: str | None,
    cluster_key: Path | None,
    change: ChangeOptions,
    cluster: ClusterConnection,
    output: str,
) -> None:
    """Import from ZooKeeper: zookeeper://host:port,…/path, or from a file of nodes.

    Of Kafka: topics with ids, partitions and configs, configs of brokers, quotas, SCRAM
    credentials, ACLs, producer ids and delegation tokens. With another --layout each node that has
    data or no children becomes a key of coordination. What is missing here is written as one
    change, or nothing if something is here already and differs. Nothing is written to ZooKeeper. A
    second import writes nothing.
    """
    if layout == _KAFKA and (prefix or into):
        raise click.UsageError("--prefix and --into are for keys: give --layout plain or logberg")
    if bridge is not None:
        run_bridge(bridge, BridgeOptions(source, change, cluster, output, cluster_key))
        return
    tree, name, revision = _read(source, cluster.deadline_s)
    if layout != _KAFKA:
        keys = keys_of_nodes(tree, KeyLayout(layout))
        moment = "two readings in a row were equal"
        reading = StoreReading(keys, revision, tree.last_zxid, moment)
        import_keys(
            reading, name, prefix, into, change, cluster, output, skip_malformed=skip_malformed
        )
        return
    plan = read_kafka(tree)
    manifest = plan.manifest(name, revision, len(tree))
    carry_out(plan, manifest, change, cluster, output, skip_malformed=skip_malformed)


def _read(source: str, timeout_s: float) -> tuple[ZnodeTree, str, int]:
    """Return the nodes, the source's name and its revision. Raises Failure."""
    try:
        if "://" not in source:
            tree = read_tree_file(Path(source))
            return tree, Path(source).name, tree.last_zxid
        zookeeper = ZooKeeperSource(source, timeout_s)
        found = zookeeper.read()
    except SourceError as error:
        raise Failure(str(error)) from None
    return found.tree, zookeeper.name, found.zxid


for _store in (etcd, consul, cassandra):
    command.add_command(_store)
