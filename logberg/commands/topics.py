"""`logberg topics`."""

from typing import Any
from urllib.parse import quote

import click

from logberg.connection_options import (
    ChangeOptions,
    ClusterConnection,
    change_options,
    cluster_options,
)
from logberg.failure import Failure
from logberg.output import facts, print_json, say, show, table
from logberg.paged_lists import all_pages
from logberg.suggesting_group import SuggestingGroup


@click.group("topics", cls=SuggestingGroup)
def command() -> None:
    """Create, list, describe and delete topics."""


@command.command("create")
@click.argument("names", nargs=-1, required=True)
@click.option("--partitions", type=int, default=-1, help="-1: the cluster's default.")
@click.option("--replication-factor", type=int, default=-1, help="-1: the cluster's default.")
@change_options
def create(
    *,
    names: tuple[str, ...],
    partitions: int,
    replication_factor: int,
    change: ChangeOptions,
    cluster: ClusterConnection,
    output: str,
) -> None:
    """Create topics; all that can be are one atomic batch."""
    body = {
        "topics": [
            {"name": name, "numPartitions": partitions, "replicationFactor": replication_factor}
            for name in names
        ],
        "dryRun": change.dry_run,
    }
    reply = cluster.ask(lambda client: change.make(client, "POST", "/v1/topics", body))
    if output == "json":
        print_json(reply)
    else:
        _show_created(reply)
    _fail_for(reply)


def _show_created(reply: dict[str, Any]) -> None:
    if reply["dryRun"]:
        print_json(reply["records"])
        return
    for topic in reply["topics"]:
        if topic["error"] is None:
            say(
                f"created {topic['name']}: {topic['numPartitions']} partitions, "
                f"{topic['replicationFactor']} replicas each (offset {reply['offset']})"
            )


@command.command("list")
@cluster_options
def list_topics(*, cluster: ClusterConnection, output: str) -> None:
    """List all topics."""
    reply = cluster.ask(lambda client: all_pages(client, "/v1/topics", "topics"))
    if output == "json":
        print_json(reply)
        return
    if not reply["topics"]:
        say("no topics")
        return
    show(
        table(
            ["topic", "id", "partitions", "replicas", "leaderless", "under-replicated"],
            [
                (
                    topic["name"],
                    topic["topicId"],
                    topic["partitionCount"],
                    topic["replicationFactor"],
                    topic["leaderless"],
                    topic["underReplicated"],
                )
                for topic in reply["topics"]
            ],
        )
    )


@command.command("describe")
@click.argument("name")
@cluster_options
def describe(*, name: str, cluster: ClusterConnection, output: str) -> None:
    """Describe one topic and its partitions."""
    path = f"/v1/topics/{quote(name, safe='')}"
    reply = cluster.ask(lambda client: all_pages(client, path, "partitions"))
    if output == "json":
        print_json(reply)
        return
    for topic in reply["topics"]:
        show(
            facts([("topic", topic["name"]), ("id", topic["topicId"]), ("offset", reply["offset"])])
        )
        show(
            table(
                ["partition", "leader", "leader epoch", "partition epoch", "replicas", "isr"],
                [
                    (
                        partition["partition"],
                        "none" if partition["leader"] < 0 else partition["leader"],
                        partition["leaderEpoch"],
                        partition["partitionEpoch"],
                        ",".join(map(str, partition["replicas"])),
                        ",".join(map(str, partition["isr"])),
                    )
                    for partition in topic["partitions"]
                ],
            )
        )


@command.command("delete")
@click.argument("name")
@change_options
def delete(*, name: str, change: ChangeOptions, cluster: ClusterConnection, output: str) -> None:
    """Delete a topic."""
    path = f"/v1/topics/{quote(name, safe='')}"
    query = {"dryRun": "true"} if change.dry_run else {}
    reply = cluster.ask(lambda client: change.make(client, "DELETE", path, query=query))
    if output == "json":
        print_json(reply)
    elif reply["dryRun"]:
        print_json(reply["records"])
    elif all(topic["error"] is None for topic in reply["topics"]):
        say(f"deleted {name} (offset {reply['offset']})")
    _fail_for(reply)


def _fail_for(reply: dict[str, Any]) -> None:
    """Exit 1 when a topic was refused, with every reason."""
    refused = [topic for topic in reply["topics"] if topic["error"] is not None]
    if refused:
        raise Failure(
            "; ".join(
                f"{topic['name']}: {topic['error']['message']} [{topic['error']['code']}]"
                for topic in refused
            )
        )
