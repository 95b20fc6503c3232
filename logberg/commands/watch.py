"""`logberg watch`."""

from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime

import click
import msgspec

from logberg.cli.connection_options import ClusterConnection, cluster_options
from logberg.cli.output import print_line, say
from logberg.client.client import LogbergClient
from metadata.messages.watch import WatchReply
from metadata.pseudonyms import person_words


@click.command("watch")
@click.argument("resource")
@click.option(
    "--from",
    "start",
    metavar="OFFSET",
    help="Begin at this offset, or at the `nextFrom` of an earlier line. Default: the log's end.",
)
@click.option("--once", is_flag=True, help="Show what there is, and don't wait for more.")
@cluster_options
def command(
    *, resource: str, start: str | None, once: bool, cluster: ClusterConnection, output: str
) -> None:
    """Show the changes of one resource as they happen, until Ctrl-C.

    RESOURCE is topic:NAME, partition:NAME-0, broker:ID, user:NAME, config:KEY, and so on. With
    --output json each line is the answer to one request; its `nextFrom` continues the watch. Only
    whoever may read the log sees who made a change, and why.
    """

    async def follow(client: LogbergClient) -> None:
        replies = _present(client, resource, start) if once else client.watch(resource, start)
        async for reply in replies:
            if output == "json":
                print_line(reply)
            else:
                _show(reply)

    with suppress(KeyboardInterrupt):
        cluster.ask(follow)


async def _present(
    client: LogbergClient, resource: str, start: str | None
) -> AsyncIterator[WatchReply]:
    """Yield what there is up to the log's end."""
    while True:
        reply = await client.watched(resource, start)
        yield reply
        if reply.next_from == start or not _is_below(reply.next_from, reply.high_watermark):
            return
        start = reply.next_from


def _is_below(place: str, offset: int) -> bool:
    at = place.partition(".")[0][:19]
    return at.isascii() and at.isdecimal() and int(at) < offset


def _show(reply: WatchReply) -> None:
    for each in reply.records:
        when = datetime.fromtimestamp(each.timestamp_ms / 1000, UTC).isoformat(timespec="seconds")
        reason = f" ({each.reason})" if each.reason else ""
        who = person_words(each.principal, each.principal_name)
        by_whom = f"{who}{reason}  " if who or reason else ""
        data = msgspec.json.encode(each.record.data).decode()
        say(f"{each.offset}  {when}  {by_whom}{each.record.type} {data}")
