"""The HTTP interface as a table: each route, its parameters and its answers.

This is the only list. Requests are matched against it, and the OpenAPI document is made from it, so
the two can't differ. Routes about clients stand in `controller.http.clients.routes`, those
about partitions and their replicas in `controller.http.replicas.routes`, those of declared state
in `controller.http.declared.routes`, those of coordination in
`controller.http.coordination.routes`, the one of imports in `controller.http.imports.routes`,
those of the bridge in `controller.http.bridge.routes`, those of signed heads and their tree in
`controller.http.transparency_routes`.
"""

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import unquote

from controller.http.bridge.routes import BRIDGE_ROUTES
from controller.http.clients.credential_routes import CREDENTIAL_ROUTES
from controller.http.clients.routes import CLIENT_ROUTES
from controller.http.coordination.routes import COORDINATION_ROUTES
from controller.http.declared.routes import DECLARED_ROUTES
from controller.http.imports.routes import IMPORT_ROUTES
from controller.http.replicas.routes import REPLICA_ROUTES
from controller.http.route import DRY_RUN, FORCE, PAGE, READS, Parameter, Route
from controller.http.transparency_routes import (
    TILE_PREFIX,
    TILE_ROUTE,
    TRANSPARENCY_ROUTES,
)
from metadata.messages import (
    CALLER,
    CHANGES_PATH,
    AlterConfigRequest,
    AlterConfigsReply,
    AlterConfigsRequest,
    AlterPartitionReply,
    AlterPartitionRequest,
    CallerReply,
    CreateTopicsReply,
    CreateTopicsRequest,
    DeleteTopicsReply,
    DeleteTopicsRequest,
    DescribeBrokerReply,
    DescribeConfigsReply,
    DescribeTopicsReply,
    ElectLeadersReply,
    ElectLeadersRequest,
    HealthReply,
    JoinedChangesReply,
    JoinedChangesRequest,
    ListBrokersReply,
    ListConfigsReply,
    ListFeaturesReply,
    ListSegmentsReply,
    ListSnapshotsReply,
    ListTopicsReply,
    LogReply,
    MetadataFetchReply,
    MetadataFetchRequest,
    QuorumReply,
    ReadLogReply,
    RunArchiveReply,
    StatusReply,
    UnregisterBrokerReply,
    UpdateFeaturesReply,
    UpdateFeaturesRequest,
    WatchReply,
)

HEARTBEATS = "/v1/metadata/fetch"
"""The path of heartbeats. The HTTP server serves their connections before those of users."""

ROUTES: tuple[Route, ...] = (
    Route(
        "POST",
        HEARTBEATS,
        "metadata_fetch",
        "A broker registers, sends its heartbeat, and fetches new batches",
        MetadataFetchReply,
        MetadataFetchRequest,
        own_error=True,
    ),
    Route(
        "GET",
        "/v1/snapshots",
        "list_snapshots",
        "The snapshots that this controller has, the newest first",
        ListSnapshotsReply,
        None,
        (
            Parameter("upTo", "integer", "only those at this offset or before it", least=0),
            Parameter("limit", "integer", "the most snapshots (default and maximum: 100)", least=1),
        ),
    ),
    Route(
        "GET",
        "/v1/snapshots/{id}",
        "read_snapshot",
        "A snapshot's bytes, by ranges (header range: bytes=from-to). With brokerId and "
        "brokerEpoch each request counts as a contact of the broker",
        None,
        None,
        (
            Parameter("brokerId", "integer", "the broker that loads it", least=0),
            Parameter("brokerEpoch", "integer", "its broker epoch", least=0),
            Parameter("clusterId", "string", "the broker's cluster; another cluster is refused"),
            Parameter(
                "incarnationId",
                "string",
                "the broker's process; requests of another process are no contact",
            ),
        ),
        "application/octet-stream",
        status=206,
    ),
    Route(
        "GET",
        "/v1/segments",
        "list_segments",
        "The segments of the log that this controller has, and the mark at which they end",
        ListSegmentsReply,
        None,
        (
            Parameter("fromBase", "integer", "only those from this base offset on", least=0),
            Parameter("limit", "integer", "the most segments (default and maximum: 100)", least=1),
        ),
    ),
    Route(
        "GET",
        "/v1/segments/{base}",
        "read_segment",
        "The bytes of the segment with this base offset, by ranges (header range: bytes=from-to)",
        None,
        None,
        (),
        "application/octet-stream",
        status=206,
    ),
    Route(
        "POST",
        "/v1/archive/run",
        "run_archive",
        "Let this controller move closed segments to the archive now. The answer comes when it is "
        "done, or after four seconds",
        RunArchiveReply,
        None,
        (Parameter("run", "integer", "wait for this run, which an earlier answer named", least=1),),
    ),
    Route(
        "POST",
        CHANGES_PATH,
        "make_changes",
        "Many changes in one request, each with its own request id and outcome; not atomic",
        JoinedChangesReply,
        JoinedChangesRequest,
        joins_changes=True,
    ),
    *TRANSPARENCY_ROUTES,
    TILE_ROUTE,
    *REPLICA_ROUTES,
    Route(
        "POST",
        "/v1/topics",
        "create_topics",
        "Create topics; those that are valid are one change",
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
            Parameter("limit", "integer", "the most topics (default and maximum: 1000)", least=1),
            PAGE[1],
        ),
    ),
    Route(
        "DELETE",
        "/v1/topics",
        "delete_topics",
        "Delete topics by names or by ids; many go in rounds, each topic as a whole",
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
        "POST",
        "/v1/partitions/alter",
        "alter_partition",
        "The leader of partitions changes their ISRs (KIP-497)",
        AlterPartitionReply,
        AlterPartitionRequest,
    ),
    Route(
        "POST",
        "/v1/partitions/elect",
        "elect_leaders",
        "Elect leaders of partitions: the preferred ones, or any replica where there is none",
        ElectLeadersReply,
        ElectLeadersRequest,
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
        "Unregister a broker that will not come back",
        UnregisterBrokerReply,
        None,
        (FORCE, DRY_RUN),
        changes=True,
    ),
    Route(
        "GET",
        "/v1/configs",
        "list_configs",
        "Resources that have configs of their own",
        ListConfigsReply,
        None,
        (
            *READS,
            Parameter(
                "type",
                "string",
                "only topic, broker, group or client-metrics",
                ("topic", "broker", "group", "client-metrics"),
            ),
            Parameter(
                "limit", "integer", "the most resources (default and maximum: 1000)", least=1
            ),
            PAGE[1],
        ),
    ),
    Route(
        "PATCH",
        "/v1/configs",
        "alter_configs",
        "Change configs of several resources; those that are valid are one change",
        AlterConfigsReply,
        AlterConfigsRequest,
        changes=True,
    ),
    Route(
        "GET",
        "/v1/configs/{type}/{name}",
        "describe_config",
        "The configs of one resource: the values that apply, and where they come from",
        DescribeConfigsReply,
        None,
        READS,
    ),
    Route(
        "PATCH",
        "/v1/configs/{type}/{name}",
        "alter_config",
        "Change configs of one resource: all of the operations, or none",
        AlterConfigsReply,
        AlterConfigRequest,
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
        CALLER,
        "describe_caller",
        "Who asks, as this controller has authenticated it",
        CallerReply,
        always=True,
    ),
    Route(
        "GET",
        "/v1/features",
        "list_features",
        "Feature levels: finalised ones, and those that each controller and broker supports",
        ListFeaturesReply,
        None,
        READS,
    ),
    Route(
        "POST",
        "/v1/features",
        "update_features",
        "Raise or lower feature levels; all of the updates are done or none",
        UpdateFeaturesReply,
        UpdateFeaturesRequest,
        changes=True,
    ),
    *BRIDGE_ROUTES,
    *CLIENT_ROUTES,
    *CREDENTIAL_ROUTES,
    *COORDINATION_ROUTES,
    *DECLARED_ROUTES,
    *IMPORT_ROUTES,
    Route(
        "GET",
        "/v1/log",
        "read_log",
        "Committed batches from an offset on; to watch, ask again from the next offset",
        ReadLogReply,
        None,
        (
            Parameter("offset", "integer", "the first offset to read (default 0)", least=0),
            Parameter(
                "maxBytes",
                "integer",
                "about so many bytes, but at least one batch (default 1 MiB)",
                least=0,
            ),
            Parameter(
                "waitMs", "integer", "how long to wait if there are no batches (default 0)", least=0
            ),
            Parameter(
                "format",
                "string",
                "batches (default; bytes as on disk) or json (for people to read)",
                ("batches", "json"),
            ),
        ),
        other=LogReply,
    ),
    Route(
        "GET",
        "/v1/watch",
        "watch_resource",
        "The records about one resource from an offset on; to go on, ask again from `nextFrom`",
        WatchReply,
        None,
        (
            Parameter("resource", "string", "such as topic:orders, partition:orders-3 or broker:7"),
            Parameter(
                "from",
                "string",
                "an offset, or the `nextFrom` of an answer (default: the log's end)",
            ),
            Parameter("waitMs", "integer", "how long to wait if there are no records", least=0),
        ),
    ),
    Route("GET", "/health/live", "live", "The process runs", HealthReply, always=True),
    Route(
        "GET",
        "/health/ready",
        "ready",
        "The controller can serve requests",
        HealthReply,
        always=True,
        own_error=True,
    ),
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
    """The route of a request's method and path."""

    route: Route | None
    arguments: Mapping[str, str]
    allowed: tuple[str, ...]
    """The methods of that path; empty if there is no such path."""


_Templates = tuple[tuple[Route, list[str]], ...]


def _group(segments: list[str]) -> tuple[int, str]:
    """Return what all paths of a route have in common: their length, and the kind of resource.

    The kinds of coordination stand one segment further behind.
    """
    place = 3 if segments[2:3] == ["coordination"] else 2
    return len(segments), segments[place] if len(segments) > place else ""


def _grouped() -> dict[tuple[int, str], _Templates]:
    split = [(route, route.path.split("/")) for route in ROUTES if route is not TILE_ROUTE]
    groups = {_group(own) for _, own in split}
    assert not any("{" in kind for _, kind in groups), "no route begins with an argument"
    return {group: tuple(each for each in split if _group(each[1]) == group) for group in groups}


def find_route(method: str, path: str) -> RouteMatch:
    """Match a request. `route` is None if the path, or its method, doesn't exist."""
    found = _WITHOUT_ARGUMENTS.get((method, path))
    return _find(method, path) if found is None else found


def _find(method: str, path: str) -> RouteMatch:
    if path.startswith(TILE_PREFIX):
        # A tile's name has slashes, so it is several segments.
        found = TILE_ROUTE if method == TILE_ROUTE.method else None
        named = {} if found is None else {"path": path[1:]}
        return RouteMatch(found, named, (TILE_ROUTE.method,))
    segments = path.split("/")
    candidates = _GROUPS.get(_group(segments), ())
    for route, template in candidates:
        if route.method == method:
            arguments = _match(template, segments)
            if arguments is not None:
                return RouteMatch(route, arguments, (method,))
    matching = (route for route, template in candidates if _match(template, segments) is not None)
    return RouteMatch(None, {}, tuple(route.method for route in matching))


def _match(template: list[str], segments: list[str]) -> dict[str, str] | None:
    if len(template) != len(segments):
        return None
    arguments: dict[str, str] = {}
    for wanted, segment in zip(template, segments, strict=True):
        if wanted.startswith("{"):
            if not segment:
                return None
            arguments[wanted[1:-1]] = unquote(segment) if "%" in segment else segment
        elif wanted != segment:
            return None
    return arguments


_GROUPS = _grouped()
_WITHOUT_ARGUMENTS = {
    (route.method, route.path): _find(route.method, route.path)
    for route in ROUTES
    if "{" not in route.path
}
