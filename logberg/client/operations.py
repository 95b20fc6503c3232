"""The operations of a client, each with its typed answer.

Rule: one method for each public route (`docs/reference.md` lists them). `asking` decides how a
request reaches the active controller. Lists are complete and come from one image. Operations about
the bridge stand in `bridge_operations`, those about clients in `client_operations`, those about
configs in `config_operations`, those of coordination in `coordination_operations`, those about
credentials in `credential_operations`, those about
declared state in `declared_operations`, those about partitions in `partition_operations`.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any
from urllib.parse import quote

import msgspec

from logberg.client.bridge_operations import BridgeOperations
from logberg.client.client_operations import ClientOperations
from logberg.client.config_operations import ConfigOperations
from logberg.client.coordination_operations import CoordinationOperations
from logberg.client.credential_operations import CredentialOperations
from logberg.client.declared_operations import DeclaredOperations
from logberg.client.import_operations import ImportOperations
from logberg.client.paged_lists import all_pages, joining
from logberg.client.partition_operations import PartitionOperations
from logberg.client.people_operations import PeopleOperations
from metadata.messages.brokers import (
    BrokerDescription,
    DescribeBrokerReply,
    ListBrokersReply,
    UnregisterBrokerReply,
)
from metadata.messages.callers import CALLER, CallerReply
from metadata.messages.features import FeatureUpdate, ListFeaturesReply, UpdateFeaturesReply
from metadata.messages.log import LogReply
from metadata.messages.partitions import ElectionType, ElectLeadersReply, TopicPartitions
from metadata.messages.quorum import QuorumReply, StatusReply
from metadata.messages.topics import (
    CreateTopicsReply,
    DeleteTopicsReply,
    DescribeTopicsReply,
    ListTopicsReply,
    NewTopic,
)
from metadata.messages.watch import WatchReply

WATCH_WAIT_MS = 4_000
"""How long a controller holds the request of a watch for which there are no records."""


class Operations(
    BridgeOperations,
    ClientOperations,
    ConfigOperations,
    CoordinationOperations,
    CredentialOperations,
    DeclaredOperations,
    ImportOperations,
    PartitionOperations,
    PeopleOperations,
):
    """Every method raises ClientError."""

    async def status(self) -> StatusReply:
        """Return how the active controller is, and the cluster as it sees it."""
        return await self.get("/v1/status", StatusReply)

    async def whoami(self) -> CallerReply:
        """Return as whom the active controller knows this client. No right is needed."""
        return await self.get(CALLER, CallerReply)

    async def quorum(self) -> QuorumReply:
        """Return who votes, who leads and who lags, as the leader sees it."""
        return await self.get("/v1/quorum", QuorumReply)

    async def topics(self) -> ListTopicsReply:
        """Return all topics by name."""
        return await all_pages(
            self.get, "/v1/topics", ListTopicsReply, joining("topics", next_after=None)
        )

    async def topic(self, name: str) -> DescribeTopicsReply:
        """Return one topic with all its partitions: `.topics[0]`."""
        return await all_pages(self.get, topic_path(name), DescribeTopicsReply, _more_partitions)

    async def create_topics(
        self,
        *topics: NewTopic,
        reason: str = "",
        request_id: str | None = None,
        expect_offset: int | None = None,
        dry_run: bool = False,
    ) -> CreateTopicsReply:
        """Create topics as one change. A topic that is refused has its `error` in the answer."""
        body = {"topics": [_given(topic) for topic in topics], "dryRun": dry_run}
        return await self.change(
            "POST",
            "/v1/topics",
            CreateTopicsReply,
            body,
            reason,
            request_id=request_id,
            expect_offset=expect_offset,
        )

    async def delete_topic(
        self,
        name: str,
        *,
        reason: str = "",
        request_id: str | None = None,
        expect_offset: int | None = None,
        dry_run: bool = False,
    ) -> DeleteTopicsReply:
        """Delete a topic. If it is refused, the answer has its `error`."""
        return await self.change(
            "DELETE",
            topic_path(name),
            DeleteTopicsReply,
            None,
            reason,
            request_id=request_id,
            expect_offset=expect_offset,
            query=_flags(dryRun=dry_run),
        )

    async def delete_topics(
        self,
        *names: str,
        reason: str = "",
        request_id: str | None = None,
        expect_offset: int | None = None,
        dry_run: bool = False,
    ) -> DeleteTopicsReply:
        """Delete topics, 10,000 at most. One that is refused has its `error` in the answer.

        Many topics go in rounds, each topic as a whole. With `expect_offset` they go as one change.
        """
        return await self.change(
            "DELETE",
            "/v1/topics",
            DeleteTopicsReply,
            {"names": names, "dryRun": dry_run},
            reason,
            request_id=request_id,
            expect_offset=expect_offset,
        )

    async def elect_leaders(
        self,
        election_type: ElectionType,
        partitions: Sequence[TopicPartitions] | None = None,
        *,
        reason: str = "",
        request_id: str | None = None,
        expect_offset: int | None = None,
        dry_run: bool = False,
    ) -> ElectLeadersReply:
        """Elect leaders of these partitions; None: of all that need it.

        Each partition of the answer has its new leader or its `error`.
        """
        body = {
            "electionType": election_type.value,
            "topicPartitions": msgspec.to_builtins(partitions),
            "dryRun": dry_run,
        }
        return await self.change(
            "POST",
            "/v1/partitions/elect",
            ElectLeadersReply,
            body,
            reason,
            request_id=request_id,
            expect_offset=expect_offset,
        )

    async def brokers(self) -> ListBrokersReply:
        """Return all registered brokers by id."""
        return await all_pages(self.get, "/v1/brokers", ListBrokersReply, joining("brokers"))

    async def broker(self, broker_id: int) -> BrokerDescription:
        """Return one broker."""
        return (await self.get(f"/v1/brokers/{broker_id}", DescribeBrokerReply)).broker

    async def unregister_broker(
        self,
        broker_id: int,
        *,
        force: bool = False,
        reason: str = "",
        request_id: str | None = None,
        expect_offset: int | None = None,
        dry_run: bool = False,
    ) -> UnregisterBrokerReply:
        """Forget a broker; `force`: also one that is online or holds a last in-sync replica."""
        return await self.change(
            "DELETE",
            f"/v1/brokers/{broker_id}",
            UnregisterBrokerReply,
            None,
            reason,
            request_id=request_id,
            expect_offset=expect_offset,
            query=_flags(dryRun=dry_run, force=force),
        )

    async def features(self) -> ListFeaturesReply:
        """Return the cluster's feature levels, and what each node supports."""
        return await self.get("/v1/features", ListFeaturesReply)

    async def update_features(
        self,
        *updates: FeatureUpdate,
        reason: str = "",
        request_id: str | None = None,
        expect_offset: int | None = None,
        dry_run: bool = False,
    ) -> UpdateFeaturesReply:
        """Raise or lower feature levels: all of them, or none."""
        body = {"updates": msgspec.to_builtins(updates), "dryRun": dry_run}
        return await self.change(
            "POST",
            "/v1/features",
            UpdateFeaturesReply,
            body,
            reason,
            request_id=request_id,
            expect_offset=expect_offset,
        )

    async def log(self, offset: int, *, wait_ms: int = 0) -> LogReply:
        """Return committed batches from `offset` on, in words; go on at its `next_offset`.

        `wait_ms`: how long to wait at the log's end for the next batch.
        """
        query = {"offset": str(offset), "waitMs": str(wait_ms), "format": "json"}
        return await self.get("/v1/log", LogReply, query)

    async def watched(
        self, resource: str, start: str | int | None = None, *, wait_ms: int = 0
    ) -> WatchReply:
        """Return the records about a resource (`topic:orders`, `broker:7`) from `start` on.

        `start`: an offset, or the `nextFrom` of an earlier answer, where a watch goes on; None: the
        log's end. `wait_ms`: how long to wait if there are no records.
        """
        query = {"resource": resource, "waitMs": str(wait_ms)}
        if start is not None:
            query["from"] = str(start)
        return await self.get("/v1/watch", WatchReply, query)

    async def watch(
        self, resource: str, start: str | int | None = None
    ) -> AsyncIterator[WatchReply]:
        """Yield the records about a resource as they come, until the caller stops.

        Each answer has one record or more; a watch from its `next_from` goes on behind it. Raises
        ClientError: OFFSET_OUT_OF_RANGE if the log no longer has that offset; any other one when no
        controller answers in time.
        """
        while True:
            reply = await self.watched(resource, start, wait_ms=WATCH_WAIT_MS)
            start = reply.next_from
            if reply.records:
                yield reply
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                # A library may have swallowed the cancellation. A watch would go on for ever.
                raise asyncio.CancelledError


def topic_path(name: str) -> str:
    """Return the path of a topic."""
    return f"/v1/topics/{quote(name, safe='')}"


def _flags(**flags: bool) -> dict[str, str]:
    return {name: "true" for name, given in flags.items() if given}


def _given(topic: NewTopic) -> dict[str, Any]:
    """Return a request without what is empty: the same bytes as before these fields existed."""
    fields: dict[str, Any] = msgspec.to_builtins(topic)
    return {name: value for name, value in fields.items() if value not in ([], (), {})}


def _more_partitions(pages: list[DescribeTopicsReply]) -> DescribeTopicsReply:
    partitions = tuple(partition for page in pages for partition in page.topics[0].partitions)
    topic = msgspec.structs.replace(pages[0].topics[0], partitions=partitions)
    return msgspec.structs.replace(pages[0], topics=(topic,), continuation=None)
