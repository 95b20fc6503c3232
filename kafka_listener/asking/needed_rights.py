"""What each request of Kafka's protocol needs, by api key, and the guard before its handler.

Rule: most handlers ask a route of ours, and the route judges (`BY_ROUTES`). What answers from the
node itself declares its needs in `KAFKA_ACCESS`, on an agent in `AGENT_ACCESS`. A request that
stands in none is refused where rights are enforced, and a test fails. An Envelope needs the right
to forward; what is in it comes through this guard again, with its user.

What a controller answers from itself is judged again when it is answered: a Fetch may have waited.
An Envelope is not, because its answer tells what was done.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from controller.access.request_needs import RequestFacts
from controller.access.rights import (
    CLUSTER_ACTION,
    DESCRIBE_CLUSTER,
    DESCRIBE_CONFIGS,
    DESCRIBE_QUORUM,
    AnyOf,
)
from controller.access.route_access import OpenTo, RouteAccess
from kafka_listener.asking.asking import ON_BEHALF_OF
from kafka_listener.asking.error_codes import kafka_code
from kafka_listener.asking.failures import failure
from kafka_listener.asking.request import Answer, Handler, KafkaFailure, KafkaRequest, Response
from kafka_listener.wire.messages import api_name
from metadata.errors import LogbergError
from runtime.http.requests import Request

JudgeRequest = Callable[[str, RouteAccess | None, Request, object], LogbergError | None]
"""`Controller.access_refusal`."""

BY_ROUTES: Final = frozenset(
    {
        *(19, 20, 29, 30, 31, 33, 37, 38, 39, 40, 41, 43, 44, 45, 46, 48, 49, 50, 51),
        *(56, 57, 62, 63, 64, 67, 73, 80, 81),
    }
)
"""The api keys of requests whose handlers ask routes only."""


def _describes(*needs: AnyOf) -> RouteAccess:
    return RouteAccess(OpenTo.BY_RIGHTS, lambda _facts, _image: iter(needs))


def _replica(facts: RequestFacts) -> int | None:
    """Return the replica that a Fetch says it is. Before version 15 it stands at the top."""
    state = facts.message.get("ReplicaState") or facts.message
    replica = int(state.get("ReplicaId", -1))
    return None if replica < 0 else replica


def _of_brokers(broker: Callable[[RequestFacts], int | None]) -> RouteAccess:
    return RouteAccess(OpenTo.BY_RIGHTS, lambda _facts, _image: iter(((CLUSTER_ACTION,),)), broker)


_ENVELOPE: Final = 58
_EACH_PART: Final = RouteAccess(OpenTo.EACH_PART)
KAFKA_ACCESS: Final[Mapping[int, RouteAccess]] = MappingProxyType(
    {
        1: _of_brokers(_replica),
        32: _EACH_PART,
        55: _describes((DESCRIBE_QUORUM, DESCRIBE_CLUSTER)),
        58: _of_brokers(lambda _facts: None),
        59: _of_brokers(_replica),
        60: _describes((DESCRIBE_CLUSTER,)),
    }
)
"""By api key: Fetch, DescribeConfigs, DescribeQuorum, Envelope, FetchSnapshot, DescribeCluster."""


AGENT_ACCESS: Final[Mapping[int, RouteAccess]] = MappingProxyType(
    {
        3: _EACH_PART,
        # It tells nothing: it refuses everybody.
        10: _EACH_PART,
        32: _EACH_PART,
        35: _describes((DESCRIBE_CLUSTER,)),
        # Any client may ask a broker which brokers there are, as in Kafka.
        60: _EACH_PART,
        74: _describes((DESCRIBE_CONFIGS,)),
        75: _EACH_PART,
    }
)
"""By api key, what an agent answers: Metadata, FindCoordinator, DescribeConfigs, DescribeLogDirs,
DescribeCluster, ListConfigResources, DescribeTopicPartitions."""
AGENT_BY_ROUTES: Final = BY_ROUTES | {55}
"""An agent asks the controllers about the quorum."""


def guarded_on_agent(api_key: int, handler: Handler, judge: JudgeRequest) -> Handler:
    """Return the same for a request to an agent."""
    if api_key in AGENT_BY_ROUTES:
        return handler
    return _judged_first(api_key, AGENT_ACCESS.get(api_key), handler, judge)


def guarded(
    api_key: int, handler: Handler, judge: JudgeRequest, *, enforced: bool = True
) -> Handler:
    """Return a handler that refuses callers without the right. It raises KafkaFailure then.

    `enforced`: `judge` refuses. Otherwise it only counts, and counts each request once.
    """
    if api_key in BY_ROUTES:
        return handler
    access = KAFKA_ACCESS.get(api_key)
    if enforced and access is not _EACH_PART and api_key != _ENVELOPE:
        handler = _judged_when_answered(api_key, access, handler, judge)
    return _judged_first(api_key, access, handler, judge)


def refused_part(request: KafkaRequest, need: AnyOf, judge: JudgeRequest) -> LogbergError | None:
    """Judge a part of a request, as if it had come alone; None: it is allowed."""
    access = _describes(need)
    return judge(api_name(request.api_key), access, _asked(request), request.fields)


def _asked(request: KafkaRequest) -> Request:
    claimed = {ON_BEHALF_OF: request.on_behalf_of} if request.on_behalf_of else {}
    return Request("", "", headers=claimed, caller=request.caller)


def _judged_first(
    api_key: int, access: RouteAccess | None, handler: Handler, judge: JudgeRequest
) -> Handler:
    name = api_name(api_key)

    def handle(request: KafkaRequest, answer: Answer) -> None:
        refused = judge(name, access, _asked(request), request.fields)
        if refused is not None:
            raise KafkaFailure(kafka_code(refused), refused.message)
        handler(request, answer)

    return handle


def _judged_when_answered(
    api_key: int, access: RouteAccess | None, handler: Handler, judge: JudgeRequest
) -> Handler:
    """Return a handler whose answers leave only if the entries of that moment allow it."""
    name = api_name(api_key)

    def handle(request: KafkaRequest, answer: Answer) -> None:
        def answered(response: Response) -> None:
            refused = judge(name, access, _asked(request), request.fields)
            if refused is not None:
                code, fields = kafka_code(refused), request.fields
                response = failure(api_key, request.version, fields, code, refused.message)
            answer(response)

        handler(request, answered)

    return handle
