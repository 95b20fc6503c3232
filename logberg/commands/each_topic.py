"""`logberg topics create --each`: many topics, each a change of its own.

Rule: the changes share requests (`logberg.client.joining`), and each keeps its own outcome. Their
request ids follow from the command's one, so the command can be repeated as a whole: what was made
stays as it is, and what was not made is made.
"""

import asyncio
from collections.abc import Sequence
from itertools import chain

import click

from logberg.cli.connection_options import ChangeOptions, ClusterConnection
from logberg.cli.failure import Failure, fail_for
from logberg.cli.output import print_json, say
from logberg.cli.progress import OnProgress, progress
from logberg.client.client import LogbergClient
from logberg.client.client_errors import ClientError, unknown_outcome
from logberg.client.request_ids import derived_request_id, new_request_id
from metadata.errors import ErrorCode
from metadata.messages.topics import CreateTopicsReply, NewTopic
from metadata.uuids import UuidError

_AT_ONCE = 256
"""So many changes are made at the same time."""
_Outcome = CreateTopicsReply | ClientError


def create_each(
    cluster: ClusterConnection, change: ChangeOptions, topics: Sequence[NewTopic], output: str
) -> None:
    """Create topics, and print what became of each. Raises Failure, UsageError."""
    if change.dry_run:
        raise click.UsageError("--each makes many changes: --dry-run shows only one")
    request_id = change.request_id or new_request_id()
    try:
        ids = [derived_request_id(request_id, topic.name) for topic in topics]
    except (UuidError, ValueError) as error:
        raise Failure(f"--request-id: {error}; it must be a UUIDv7") from None
    if len(set(ids)) < len(ids):
        raise click.UsageError("a topic is named twice")
    with progress("creating") as tell:
        outcomes = cluster.ask(
            lambda client: _created(client, change, topics, ids, tell), request_id
        )
    _show(outcomes, output)
    _fail(cluster, topics, outcomes, request_id)


async def _created(
    client: LogbergClient,
    change: ChangeOptions,
    topics: Sequence[NewTopic],
    ids: Sequence[str],
    tell: OnProgress,
) -> list[_Outcome]:
    outcomes: list[_Outcome | None] = [None] * len(topics)
    left, done = iter(range(len(topics))), 0

    async def worker() -> None:
        nonlocal done
        for number in left:
            try:
                outcomes[number] = await client.create_topics(
                    topics[number], **change.arguments() | {"request_id": ids[number]}
                )
            except ClientError as error:
                outcomes[number] = error
            done += 1
            tell(done, len(topics))

    await asyncio.gather(*(worker() for _ in range(min(_AT_ONCE, len(topics)))))
    return [outcome for outcome in outcomes if outcome is not None]


def _show(outcomes: Sequence[_Outcome], output: str) -> None:
    replies = [each for each in outcomes if not isinstance(each, ClientError)]
    if output == "json":
        print_json(replies)
        return
    for reply in replies:
        for topic in reply.topics:
            if topic.error is None:
                say(
                    f"created {topic.name}: {topic.num_partitions} partitions, "
                    f"{topic.replication_factor} replicas each (offset {reply.offset})"
                )


def _fail(
    cluster: ClusterConnection,
    topics: Sequence[NewTopic],
    outcomes: Sequence[_Outcome],
    request_id: str,
) -> None:
    """Raise Failure unless every topic was created."""
    errors = [each for each in outcomes if isinstance(each, ClientError)]
    unknown = [each for each in errors if each.code == ErrorCode.REQUEST_TIMED_OUT]
    if unknown:
        why = f"{len(unknown)} of {len(outcomes)} topics were not answered in time"
        raise cluster.failure(unknown_outcome(request_id, why, unknown[0].status))
    refused = (
        (topic.name or "", topic.error)
        for reply in outcomes
        if not isinstance(reply, ClientError)
        for topic in reply.topics
    )
    failed = (
        (topic.name, outcome.reply)
        for topic, outcome in zip(topics, outcomes, strict=True)
        if isinstance(outcome, ClientError)
    )
    fail_for(chain(refused, failed))
