"""The HTTP interface as a table: what there is, what it takes and what it answers.

Rule: the one list. Requests are matched against it, and the OpenAPI document is made from it, so
that neither can say what the other doesn't.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

from metadata.messages import (
    CreateTopicsReply,
    CreateTopicsRequest,
    DeleteTopicsReply,
    DeleteTopicsRequest,
    DescribeBrokerReply,
    DescribeTopicsReply,
    HealthReply,
    ListBrokersReply,
    ListFeaturesReply,
    ListTopicsReply,
    MetadataFetchReply,
    MetadataFetchRequest,
    QuorumReply,
    ReadLogReply,
    StatusReply,
    UnregisterBrokerReply,
    UpdateFeaturesReply,
    UpdateFeaturesRequest,
)


class Parameter(NamedTuple):
    """A query parameter."""

    name: str
    kind: str
    """As in a JSON schema: string, integer or boolean."""
    summary: str


CONSISTENCY = Parameter(
    "consistency",
    "string",
    "linearizable (default; the active controller answers) or stale (any node answers at once)",
)
MIN_OFFSET = Parameter(
    "minOffset", "integer", "any node answers, once it has applied everything before this offset"
)
READS = (CONSISTENCY, MIN_OFFSET)
FORCE = Parameter(
    "force", "boolean", "also an online broker, or the last in-sync replica of a partition"
)
PAGE = (
    Parameter("limit", "integer", "at most so many (all; the answer may give fewer)"),
    Parameter("continuation", "string", "go on behind an earlier answer, from the same state"),
)
DRY_RUN = Parameter("dryRun", "boolean", "decide and answer, but write nothing")


class Route(NamedTuple):
    """One operation."""

    method: str
    path: str
    """With `{name}` for one segment."""
    name: str
    summary: str
    reply: Any
    """The message of a success; None: other content."""
    request: Any = None
    parameters: tuple[Parameter, ...] = ()
    content: str = ""
    """Content type, where it isn't a message."""
    changes: bool = False
    """It writes: it takes `x-logberg-request-id` and is done once."""
    always: bool = False
    """Answered also by a node that serves nothing else."""
    status: int = 200
    """Of a success."""


HEARTBEATS = "/v1/metadata/fetch"
"""Where brokers are heard: it goes before what people ask for."""

ROUTES = (
    Route(
        "POST",
        HEARTBEATS,
        "metadata_fetch",
        "A broker's one call: register, heartbeat, and fetch what is new",
        MetadataFetchReply,
        MetadataFetchRequest,
    ),
    Route(
        "GET",
        "/v1/snapshots/{id}",
        "read_snapshot",
        "A snapshot's bytes, by ranges (header range: bytes=from-to). With brokerId and "
        "brokerEpoch each piece counts as a sign of life",
        None,
        None,
        (
            Parameter("brokerId", "integer", "who loads it"),
            Parameter("brokerEpoch", "integer", "and its epoch"),
            Parameter("clusterId", "string", "the broker's cluster; another one is refused"),
            Parameter(
                "incarnationId",
                "string",
                "the broker's process; of another one it is no sign of life",
            ),
        ),
        "application/octet-stream",
        status=206,
    ),
    Route(
        "POST",
        "/v1/topics",
        "create_topics",
        "Create topics, all that can be, as one change",
        CreateTopicsReply,
        CreateTopicsRequest,
        changes=True,
    ),
    Route(
        "GET",
        "/v1/topics",
        "list_topics",
        "Topics by name",
        ListTopicsReply,
        None,
        (
            *READS,
            Parameter("after", "string", "only names after this one"),
            Parameter("limit", "integer", "at most so many (1000)"),
            PAGE[1],
        ),
    ),
    Route(
        "DELETE",
        "/v1/topics",
        "delete_topics",
        "Delete topics by names or by ids",
        DeleteTopicsReply,
        DeleteTopicsRequest,
        changes=True,
    ),
    Route(
        "GET",
        "/v1/topics/{name}",
        "describe_topic",
        "One topic with its partitions",
        DescribeTopicsReply,
        None,
        (*READS, *PAGE),
    ),
    Route(
        "DELETE",
        "/v1/topics/{name}",
        "delete_topic",
        "Delete one topic",
        DeleteTopicsReply,
        None,
        (DRY_RUN,),
        changes=True,
    ),
    Route(
        "GET",
        "/v1/brokers",
        "list_brokers",
        "All brokers and their states",
        ListBrokersReply,
        None,
        (*READS, *PAGE),
    ),
    Route(
        "GET",
        "/v1/brokers/{id}",
        "describe_broker",
        "One broker",
        DescribeBrokerReply,
        None,
        READS,
    ),
    Route(
        "DELETE",
        "/v1/brokers/{id}",
        "unregister_broker",
        "Forget a broker that is gone for good",
        UnregisterBrokerReply,
        None,
        (FORCE, DRY_RUN),
        changes=True,
    ),
    Route(
        "GET",
        "/v1/quorum",
        "describe_quorum",
        "The controllers, as this one sees them",
        QuorumReply,
        always=True,
    ),
    Route(
        "GET",
        "/v1/status",
        "status",
        "This controller, and the cluster as it sees it",
        StatusReply,
        always=True,
    ),
    Route(
        "GET",
        "/v1/features",
        "list_features",
        "Feature levels: finalised, and what each controller and broker supports",
        ListFeaturesReply,
        None,
        READS,
    ),
    Route(
        "POST",
        "/v1/features",
        "update_features",
        "Raise or lower feature levels, all of them or none",
        UpdateFeaturesReply,
        UpdateFeaturesRequest,
        changes=True,
    ),
    Route(
        "GET",
        "/v1/log",
        "read_log",
        "Committed batches from an offset on; a watch asks again",
        ReadLogReply,
        None,
        (
            Parameter("offset", "integer", "from here (0)"),
            Parameter("maxBytes", "integer", "about so much, but at least one batch (1 MiB)"),
            Parameter("waitMs", "integer", "how long to wait while there is nothing (0)"),
            Parameter("format", "string", "batches (default: as on disk) or json (in words)"),
        ),
    ),
    Route("GET", "/health/live", "live", "The process works", HealthReply, always=True),
    Route("GET", "/health/ready", "ready", "It can do its part", HealthReply, always=True),
    Route(
        "GET",
        "/metrics",
        "metrics",
        "Metrics in Prometheus' text format",
        None,
        content="text/plain",
        always=True,
    ),
    Route(
        "GET",
        "/v1/openapi.json",
        "openapi_document",
        "This interface, as an OpenAPI document",
        None,
        content="application/json",
        always=True,
    ),
)


class RouteMatch(NamedTuple):
    """What a request's method and path mean."""

    route: Route | None
    arguments: Mapping[str, str]
    allowed: tuple[str, ...]
    """Methods of that path; none: there is no such path."""


def find_route(method: str, path: str) -> RouteMatch:
    """Match a request. `route` is None when there is no such path, or not with this method."""
    allowed: list[str] = []
    segments = path.split("/")
    for route in ROUTES:
        arguments = _match(route.path.split("/"), segments)
        if arguments is None:
            continue
        if route.method == method:
            return RouteMatch(route, arguments, (method,))
        allowed.append(route.method)
    return RouteMatch(None, {}, tuple(allowed))


def _match(template: list[str], segments: list[str]) -> dict[str, str] | None:
    if len(template) != len(segments):
        return None
    arguments: dict[str, str] = {}
    for wanted, segment in zip(template, segments, strict=True):
        if wanted.startswith("{"):
            if not segment:
                return None
            arguments[wanted[1:-1]] = unquote(segment)
        elif wanted != segment:
            return None
    return arguments
