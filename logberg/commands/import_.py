"""`logberg import`: what another store holds becomes this cluster's state, as one change."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import click
import msgspec

from logberg.cli.connection_options import ChangeOptions, ClusterConnection, change_options
from logberg.cli.failure import Failure
from logberg.cli.output import facts, note, print_json, say, show, table
from logberg.cli.suggesting_group import SuggestingGroup
from logberg.importing.import_plan import ImportManifest, ImportPlan
from logberg.importing.kafka_layout import read_kafka
from logberg.importing.source_error import SourceError
from logberg.importing.tree_file import read_tree_file
from logberg.importing.znodes import ZnodeTree
from logberg.importing.zookeeper_source import ZooKeeperSource
from metadata.messages.imports import ImportReply

_SHOWN: Final = 20
"""The most malformed nodes or conflicts that an error lists."""


@click.group("import", cls=SuggestingGroup)
def command() -> None:
    """Take over what another store holds, as one change."""


@command.command("zookeeper")
@click.argument("source", envvar="LOGBERG_IMPORT_SOURCE")
@click.option("--skip-malformed", is_flag=True, help="Import the rest if some nodes can't be read.")
@change_options
def zookeeper(
    *,
    source: str,
    skip_malformed: bool,
    change: ChangeOptions,
    cluster: ClusterConnection,
    output: str,
) -> None:
    """Import what Kafka keeps in ZooKeeper: zookeeper://host:port,…/path, or a file of nodes.

    Topics with ids, partitions and configs, configs of brokers, quotas, SCRAM credentials, ACLs,
    producer ids and delegation tokens. What is missing here is written as one change, or nothing
    if something is here already and differs. Nothing is written to ZooKeeper. A second import
    writes nothing.
    """
    tree, name, revision = _read(source, cluster.deadline_s)
    plan = read_kafka(tree)
    manifest = plan.manifest(name, revision, len(tree))
    if output != "json":
        _show(manifest)
    if manifest.malformed and not skip_malformed:
        raise Failure(
            f"{len(manifest.malformed)} nodes can't be read, and nothing is imported: "
            f"{_listed((f.path, f.why) for f in manifest.malformed)}. Correct them, or leave them "
            "with --skip-malformed"
        )
    reply = _import(plan, manifest, change, cluster)
    if output == "json":
        print_json({"manifest": manifest, "reply": reply})
    if reply.conflict_count:
        raise Failure(
            f"{reply.conflict_count} things are different here, and nothing is imported: "
            f"{_listed((each.name, each.why) for each in reply.conflicts)}"
        )
    if output != "json":
        what = "would write" if reply.dry_run else "imported:"
        where = "" if reply.dry_run or not reply.written else f" (offset {reply.offset})"
        expired = f", {reply.expired} expired" if reply.expired else ""
        say(f"{what} {reply.written} records; {reply.same} are here already{expired}{where}")


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


def _import(
    plan: ImportPlan, manifest: ImportManifest, change: ChangeOptions, cluster: ClusterConnection
) -> ImportReply:
    """Ask the controllers. The log's reason says from where, also if the caller gives one."""
    reason = f"import of {manifest.source} at revision {manifest.revision}"
    given = msgspec.structs.replace(
        change, reason=f"{reason}: {change.reason}" if change.reason else reason
    )
    return cluster.ask(
        lambda client: client.import_records(
            plan.records, manifest.source, manifest.revision, **given.arguments()
        )
    )


def _show(manifest: ImportManifest) -> None:
    show(
        facts(
            [
                ("source", manifest.source),
                ("revision", manifest.revision),
                ("cluster id", manifest.cluster_id or "none"),
                ("nodes", manifest.nodes),
            ]
        ),
        "",
        table(["records", "count"], [[n, count] for n, count in manifest.records.items()]),
    )
    reasons = Counter(each.why for each in manifest.left)
    if reasons:
        first: dict[str, str] = {}
        for each in manifest.left:
            first.setdefault(each.why, each.path)
        rows = [[count, first[why], why] for why, count in reasons.items()]
        show("", table(["left", "such as", "why"], rows))
    for each in (*manifest.notes, *manifest.malformed):
        note(f"{each.path}: {each.why}")


def _listed(findings: Iterable[tuple[str, str]]) -> str:
    every = [f"{what}: {why}" for what, why in findings]
    more = f"; and {len(every) - _SHOWN} more" if len(every) > _SHOWN else ""
    return "; ".join(every[:_SHOWN]) + more
