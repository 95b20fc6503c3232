"""`logberg topics`."""

from typing import TextIO

import click

from logberg.cli.connection_options import (
    ChangeOptions,
    ClusterConnection,
    change_options,
    print_change,
    reading_options,
)
from logberg.cli.failure import fail_for
from logberg.cli.key_and_value import key_and_value
from logberg.cli.output import facts, print_json, say, show, table
from logberg.cli.progress import progress
from logberg.cli.suggesting_group import SuggestingGroup
from logberg.client.paged_lists import without_pages
from logberg.commands.each_topic import create_each
from logberg.commands.long_changes import carry_out
from metadata.messages.topics import NewTopic


@click.group("topics", cls=SuggestingGroup)
def command() -> None:
    """Create, list, describe and delete topics."""


def _some_names(
    context: click.Context, _parameter: click.Parameter, source: TextIO | None
) -> TextIO | None:
    """Refuse a command without names before a cluster is looked for."""
    if source is None and not context.params.get("names"):
        raise click.UsageError("name at least one topic, or a file of names with --from")
    return source


@command.command("create")
@click.argument("names", nargs=-1)
@click.option(
    "--from",
    "source",
    type=click.File(),
    callback=_some_names,
    metavar="FILE",
    help="Create also the topics that this file names, one a line; - is standard input.",
)
@click.option(
    "--each",
    is_flag=True,
    help="Make each topic a change of its own. Then there may be any number of them.",
)
@click.option(
    "--partitions", type=int, default=-1, help="For each topic; -1: the cluster's default."
)
@click.option(
    "--replication-factor",
    type=int,
    default=-1,
    help="Replicas of each partition; -1: the cluster's default.",
)
@click.option(
    "--config", "configs", multiple=True, metavar="KEY=VALUE", help="A topic config. Repeatable."
)
@change_options
def create(
    *,
    names: tuple[str, ...],
    source: TextIO | None,
    each: bool,
    partitions: int,
    replication_factor: int,
    configs: tuple[str, ...],
    change: ChangeOptions,
    cluster: ClusterConnection,
    output: str,
) -> None:
    """Create topics. If some are refused, the others are still created, as one atomic change.

    With --each, every topic is a change of its own, and there may be any number of them.
    """
    given: dict[str, str | None] = dict(key_and_value(text) for text in configs)
    names += () if source is None else tuple(line.strip() for line in source if line.strip())
    if not names:
        raise click.UsageError("the file of --from names no topic")
    wanted = [NewTopic(name, partitions, replication_factor, configs=given) for name in names]
    if each:
        create_each(cluster, change, wanted, output)
        return
    reply = cluster.ask(lambda client: client.create_topics(*wanted, **change.arguments()))
    created = (
        f"created {topic.name}: {topic.num_partitions} partitions, "
        f"{topic.replication_factor} replicas each (offset {reply.offset})"
        for topic in reply.topics
        if topic.error is None
    )
    print_change(reply, output, *created)
    fail_for((topic.name or "", topic.error) for topic in reply.topics)


@command.command("list")
@reading_options
def list_topics(*, cluster: ClusterConnection, output: str) -> None:
    """List all topics."""
    reply = cluster.ask(lambda client: client.topics())
    if output == "json":
        print_json(without_pages(reply))
        return
    if not reply.topics:
        say("no topics")
        return
    show(
        table(
            ["topic", "id", "partitions", "replicas", "leaderless", "under-replicated"],
            [
                (
                    topic.name,
                    topic.topic_id,
                    topic.partition_count,
                    topic.replication_factor,
                    topic.leaderless,
                    topic.under_replicated,
                )
                for topic in reply.topics
            ],
        )
    )


@command.command("describe")
@click.argument("name")
@reading_options
def describe(*, name: str, cluster: ClusterConnection, output: str) -> None:
    """Describe one topic and its partitions."""
    reply = cluster.ask(lambda client: client.topic(name))
    if output == "json":
        print_json(without_pages(reply))
        return
    for topic in reply.topics:
        show(facts([("topic", topic.name), ("id", topic.topic_id), ("offset", reply.offset)]))
        show(
            table(
                ["partition", "leader", "leader epoch", "partition epoch", "replicas", "isr"],
                [
                    (
                        partition.partition,
                        "none" if partition.leader < 0 else partition.leader,
                        partition.leader_epoch,
                        partition.partition_epoch,
                        ",".join(map(str, partition.replicas)),
                        ",".join(map(str, partition.isr)),
                    )
                    for partition in topic.partitions
                ],
            )
        )


@command.command("delete")
@click.argument("names", nargs=-1, required=True)
@change_options
def delete(
    *, names: tuple[str, ...], change: ChangeOptions, cluster: ClusterConnection, output: str
) -> None:
    """Delete topics. Many go in rounds; if some are refused, the others are still deleted."""
    if len(names) == 1:
        reply = cluster.ask(lambda client: client.delete_topic(names[0], **change.arguments()))
    else:
        with progress("deleting") as tell:
            reply = carry_out(
                cluster,
                change,
                lambda client, arguments: client.delete_topics(*names, **arguments),
                tell,
            )
    deleted = (
        f"deleted {topic.name} (offset {reply.offset})"
        for topic in reply.topics
        if topic.error is None
    )
    print_change(reply, output, *deleted)
    fail_for((topic.name or "", topic.error) for topic in reply.topics)
