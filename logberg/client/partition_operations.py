"""The operations of a client that are about partitions and their replicas."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import msgspec

from logberg.client.asking import Asking
from logberg.client.paged_lists import all_pages, joining
from metadata.messages.findings import ExplainBrokerReply
from metadata.messages.losses import LossReply
from metadata.messages.reassignments import (
    AlterReassignmentsReply,
    ListReassignmentsReply,
    PlanReply,
    Reassignment,
)
from metadata.messages.topic_partitions import (
    CreatePartitionsReply,
    DescribePartitionReply,
    ListPartitionsReply,
    NewPartitions,
)


class PartitionOperations(Asking):
    """Every method raises ClientError."""

    async def partitions(
        self,
        *,
        topic: str | None = None,
        leaderless: bool = False,
        under_replicated: bool = False,
        reassigning: bool = False,
    ) -> ListPartitionsReply:
        """Return partitions by topic and number: all of them, or those that fit every filter."""
        flags = {
            "leaderless": leaderless,
            "underReplicated": under_replicated,
            "reassigning": reassigning,
        }
        query = {name: "true" for name, given in flags.items() if given}
        if topic is not None:
            query["topic"] = topic
        return await all_pages(
            self.get, "/v1/partitions", ListPartitionsReply, joining("partitions"), query
        )

    async def partition(self, topic: str, number: int) -> DescribePartitionReply:
        """Return one partition, and why it is not in order if it isn't."""
        path = f"/v1/partitions/{quote(topic, safe='')}/{number}"
        return await self.get(path, DescribePartitionReply)

    async def create_partitions(
        self,
        *topics: NewPartitions,
        reason: str = "",
        request_id: str | None = None,
        expect_offset: int | None = None,
        dry_run: bool = False,
    ) -> CreatePartitionsReply:
        """Add partitions as one change. A topic that is refused has its `error` in the answer."""
        body = {"topics": msgspec.to_builtins(topics), "dryRun": dry_run}
        return await self.change(
            "POST",
            "/v1/partitions",
            CreatePartitionsReply,
            body,
            reason,
            request_id=request_id,
            expect_offset=expect_offset,
        )

    async def alter_reassignments(
        self,
        *partitions: Reassignment,
        allow_replication_factor_change: bool = True,
        reason: str = "",
        request_id: str | None = None,
        expect_offset: int | None = None,
        dry_run: bool = False,
    ) -> AlterReassignmentsReply:
        """Start, replace or cancel reassignments; each partition has its own answer."""
        body: dict[str, Any] = {
            "partitions": msgspec.to_builtins(partitions),
            "allowReplicationFactorChange": allow_replication_factor_change,
            "dryRun": dry_run,
        }
        return await self.change(
            "POST",
            "/v1/reassignments",
            AlterReassignmentsReply,
            body,
            reason,
            request_id=request_id,
            expect_offset=expect_offset,
        )

    async def reassignments(self, *, topic: str | None = None) -> ListReassignmentsReply:
        """Return the running reassignments by topic and partition."""
        query = {} if topic is None else {"topic": topic}
        return await all_pages(
            self.get, "/v1/reassignments", ListReassignmentsReply, joining("partitions"), query
        )

    async def plan_reassignments(self, brokers: Sequence[int]) -> PlanReply:
        """Return what to ask for so that these brokers hold no replica any more."""
        query = {"brokers": ",".join(map(str, brokers))}
        return await self.get("/v1/reassignments/plan", PlanReply, query)

    async def what_if_lost(
        self, brokers: Sequence[int] = (), *, rack: str | None = None, all_changes: bool = False
    ) -> LossReply:
        """Return what losing these brokers, or a rack, would write; nothing is written.

        `all_changes`: list also the partitions that stay in order.
        """
        query = {"all": "true"} if all_changes else {}
        if brokers:
            query["brokers"] = ",".join(map(str, brokers))
        if rack is not None:
            query["rack"] = rack
        return await self.get("/v1/what-if/loss", LossReply, query)

    async def explain_broker(self, broker_id: int) -> ExplainBrokerReply:
        """Return why a broker is fenced, or may not stop."""
        return await self.get(f"/v1/brokers/{broker_id}/explain", ExplainBrokerReply)
