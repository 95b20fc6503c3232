"""Where controllers listen for Kafka, brokers and controllers share one space of node ids."""

from typing import Any

import pytest

from controller.managers.features import register_controller
from controller.managers.node_ids import ids_are_shared
from metadata.errors import ErrorCode, LogbergError
from metadata.messages import WantedState
from metadata.records import RegisterControllerRecord
from tests.unit.controller.cluster import Broker, Cluster


def address(node_id: int) -> tuple[str, str, int]:
    return ("CONTROLLER", "localhost", 9090 + node_id)


def refusal(cluster: Any, broker_id: int) -> str:
    """Return why a broker is not registered; empty: it is."""
    error = Broker(cluster, broker_id).fetch(WantedState.FENCED).error
    assert error is None or error.known_code() is ErrorCode.INVALID_REGISTRATION
    return "" if error is None else error.message


def test_a_new_broker_can_t_have_a_controller_s_id() -> None:
    cluster = Cluster(kafka_address=address)
    assert ids_are_shared(cluster.image)
    for controller_id in (1, 2, 3):
        assert f"node id {controller_id} belongs to a controller" in refusal(cluster, controller_id)
    assert refusal(cluster, 4) == ""
    assert [broker.broker_id for broker in cluster.image.cluster.brokers.values()] == [4]


def test_without_a_listener_for_kafka_ids_are_counted_apart() -> None:
    cluster = Cluster()
    assert not ids_are_shared(cluster.image)
    assert refusal(cluster, 1) == ""


def test_ids_that_both_kinds_had_before_the_listener_came_stay() -> None:
    cluster = Cluster()
    assert refusal(cluster, 1) == ""
    cluster.config["kafka_address"] = address
    for node_id in (2, 3, 1):
        cluster.kill(node_id)
        cluster.start(node_id)
    cluster.run(0.5)
    cluster.lead(1)
    cluster.run_until(cluster.registered)
    cluster.run(10.0)
    assert ids_are_shared(cluster.image)
    assert not cluster.events("controller_registration_refused")
    assert refusal(cluster, 1) == "", "a new process of the broker that was there"
    assert "belongs to a controller" in refusal(cluster, 2)
    cluster.assert_equal()


@pytest.fixture
def with_broker_4() -> Any:
    cluster = Cluster(kafka_address=address)
    Broker(cluster, 4).register()
    return cluster


def test_a_new_controller_can_t_have_a_broker_s_id(with_broker_4: Any) -> None:
    cluster = with_broker_4
    three = cluster.image.cluster.controllers[3]
    clashing = RegisterControllerRecord(4, bytes(16), False, (), three.features)
    with pytest.raises(LogbergError, match="node id 4 belongs to a broker") as refused:
        register_controller(cluster.image, clashing)
    assert refused.value.code is ErrorCode.INVALID_REGISTRATION
    free = RegisterControllerRecord(5, bytes(16), False, (), three.features)
    assert register_controller(cluster.image, free).records == (free,)


def test_the_leader_says_once_why_a_controller_is_not_registered(with_broker_4: Any) -> None:
    cluster = with_broker_4
    three = cluster.image.cluster.controllers[3]
    clashing = RegisterControllerRecord(4, bytes(16), False, (), three.features)
    registration = cluster.leader._leader.self_registration
    cluster.processes[1].run(lambda: registration._register(clashing))
    cluster.run(5.0)
    [event] = cluster.events("controller_registration_refused")
    assert (event["controller"], "unregister 4" in event["why"]) == (4, True)
