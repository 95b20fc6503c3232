"""The routes about partitions and replicas, a part of the table in `controller.http.routes`."""

from typing import Final

from controller.http.route import PAGE, READS, Parameter, Route
from metadata.messages import (
    AlterReassignmentsReply,
    AlterReassignmentsRequest,
    AssignReplicasReply,
    AssignReplicasRequest,
    CreatePartitionsReply,
    CreatePartitionsRequest,
    DescribePartitionReply,
    ExplainBrokerReply,
    ListPartitionsReply,
    ListReassignmentsReply,
    LossReply,
    PlanReply,
)

TOPIC: Final = Parameter("topic", "string", "only partitions of this topic")
BROKERS: Final = Parameter("brokers", "string", "broker ids, such as 3,4")
SHORT_PAGE: Final = (
    Parameter(
        "limit",
        "integer",
        "the most entries (default and maximum: 1000); the answer may have fewer, or none",
        least=1,
    ),
    PAGE[1],
)

REPLICA_ROUTES: Final = (
    Route(
        "POST",
        "/v1/partitions",
        "create_partitions",
        "Add partitions to topics; what is valid is one change",
        CreatePartitionsReply,
        CreatePartitionsRequest,
        changes=True,
    ),
    Route(
        "GET",
        "/v1/partitions",
        "list_partitions",
        "Partitions by topic and number: all of them, or those that fit every filter",
        ListPartitionsReply,
        None,
        (
            *READS,
            TOPIC,
            Parameter("leaderless", "boolean", "only those without a leader"),
            Parameter("underReplicated", "boolean", "only those with replicas that lag"),
            Parameter("reassigning", "boolean", "only those that are being reassigned"),
            *SHORT_PAGE,
        ),
    ),
    Route(
        "GET",
        "/v1/partitions/{topic}/{partition}",
        "describe_partition",
        "One partition, and what is not in order with it",
        DescribePartitionReply,
        None,
        READS,
    ),
    Route(
        "POST",
        "/v1/reassignments",
        "alter_reassignments",
        "Start, replace or cancel reassignments; many are written in rounds",
        AlterReassignmentsReply,
        AlterReassignmentsRequest,
        changes=True,
        long_list="partitions",
    ),
    Route(
        "GET",
        "/v1/reassignments",
        "list_reassignments",
        "The reassignments that are running",
        ListReassignmentsReply,
        None,
        (*READS, TOPIC, *SHORT_PAGE),
    ),
    Route(
        "GET",
        "/v1/reassignments/plan",
        "plan_reassignments",
        "Reassignments that take every replica off some brokers; nothing is written",
        PlanReply,
        None,
        (*READS, BROKERS),
    ),
    Route(
        "GET",
        "/v1/what-if/loss",
        "lose_brokers",
        "What would be written if brokers were lost, and what would be out of order then",
        LossReply,
        None,
        (
            *READS,
            BROKERS,
            Parameter("rack", "string", "all brokers of this rack"),
            Parameter("all", "boolean", "list also partitions that stay in order"),
        ),
    ),
    Route(
        "GET",
        "/v1/brokers/{id}/explain",
        "explain_broker",
        "Why a broker is fenced, or may not stop",
        ExplainBrokerReply,
        None,
        READS,
    ),
    Route(
        "POST",
        "/v1/brokers/{id}/directories",
        "assign_replicas",
        "A broker says in which log directories its replicas lie",
        AssignReplicasReply,
        AssignReplicasRequest,
    ),
)
