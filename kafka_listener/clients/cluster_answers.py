"""Answers DescribeCluster (api key 60, versions 0 to 2): the cluster's id and its nodes.

Rule: a broker describes brokers, and a controller describes controllers. A client that asks for the
others is told so with MISMATCHED_ENDPOINT_TYPE, as by Kafka (KIP-919).
"""

from collections.abc import Iterator
from typing import Final

from kafka_listener.asking.kafka_code import KafkaCode
from kafka_listener.asking.request import Answer, Fields, KafkaFailure, KafkaRequest
from kafka_listener.clients.alive_brokers import AliveBrokers
from kafka_listener.clients.allowed_operations import NOT_ASKED, on_cluster
from kafka_listener.clients.image_source import ControllerSource, ImageSource
from metadata.image import MetadataImage

DESCRIBE_CLUSTER: Final = 60
BROKERS: Final = 1
CONTROLLERS: Final = 2
_ELSEWHERE: Final = {
    BROKERS: "this is a broker: name controllers with --bootstrap-controller",
    CONTROLLERS: "this is a controller: name brokers with --bootstrap-server",
}


def describe_brokers(source: ImageSource, request: KafkaRequest, answer: Answer) -> None:
    """Answer a request to a broker. Raises KafkaFailure."""
    _check(source, request, BROKERS)
    alive = AliveBrokers(source.image, request.listener)
    with_fenced = bool(request.fields.get("IncludeFencedBrokers"))
    nodes = alive.described(with_fenced=with_fenced)
    answer(_response(source, request, BROKERS, alive.controller_for(source.node_id), nodes))


def describe_controllers(source: ControllerSource, request: KafkaRequest, answer: Answer) -> None:
    """Answer a request to a controller. Raises KafkaFailure."""
    _check(source, request, CONTROLLERS)
    nodes = _controllers(source.image, request.listener)
    answer(_response(source, request, CONTROLLERS, source.leader_id, nodes))


def _check(source: ImageSource, request: KafkaRequest, ours: int) -> None:
    """Refuse what this node can't describe. Raises KafkaFailure."""
    kind = request.fields.get("EndpointType", BROKERS)
    if kind not in _ELSEWHERE:
        raise KafkaFailure(KafkaCode.UNSUPPORTED_ENDPOINT_TYPE, f"there is no endpoint type {kind}")
    if kind != ours:
        raise KafkaFailure(KafkaCode.MISMATCHED_ENDPOINT_TYPE, _ELSEWHERE[ours])
    why = source.refusal()
    if why:
        raise KafkaFailure(KafkaCode.BROKER_NOT_AVAILABLE, why)


def _response(
    source: ImageSource, request: KafkaRequest, kind: int, leader: int, nodes: Iterator[Fields]
) -> Fields:
    asked = bool(request.fields.get("IncludeClusterAuthorizedOperations"))
    return {
        "EndpointType": kind,
        "ClusterId": source.cluster_id,
        "ControllerId": leader,
        "Brokers": nodes,
        "ClusterAuthorizedOperations": on_cluster(source.rights(request)) if asked else NOT_ASKED,
    }


def _controllers(image: MetadataImage, listener: str) -> Iterator[Fields]:
    """Yield the voters that have a Kafka listener of this name."""
    for voter in image.quorum.voters:
        for point in voter.endpoints:
            if point.name == listener:
                yield {"BrokerId": voter.voter_id, "Host": point.host, "Port": point.port}
