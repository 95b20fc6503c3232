"""An agent's listener: credentials only while it serves, and every handler in its place."""

from types import SimpleNamespace
from typing import Any

import pytest
import structlog

from controller.access.guard import AccessGuard
from kafka_listener.agent_listener import AgentCredentials, agent_listener_handlers
from kafka_listener.serving.api_versions import served_versions
from kafka_listener.serving.login_refused import LoginRefusedError
from metadata.records import ScramMechanism
from runtime.simulated.host import SimulatedHost
from runtime.simulated.network import SimulatedNetwork
from runtime.simulated.world import World
from runtime.sockets.refusals import Refusals
from tests.unit.broker_agent.rig import Rig

SHA_256 = ScramMechanism.SCRAM_SHA_256


def test_a_broker_that_may_not_serve_checks_no_password() -> None:
    keys = object()
    serving: Any = SimpleNamespace(may_serve=lambda: True)
    secrets: Any = SimpleNamespace(
        scram=lambda user, _mechanism: keys if user == "dora" else None,
        token=lambda token_id: keys if token_id == "known" else None,
    )
    credentials = AgentCredentials(serving, secrets)
    assert credentials.scram("dora", SHA_256) is keys
    assert credentials.scram("nobody", SHA_256) is None
    assert credentials.token("known") is keys
    serving.may_serve = lambda: False
    with pytest.raises(LoginRefusedError, match="not in service"):
        credentials.scram("dora", SHA_256)
    with pytest.raises(LoginRefusedError, match="not in service"):
        credentials.token("known")


def test_administrators_find_every_request_and_brokers_none() -> None:
    world = World(1)
    clock = SimulatedHost(world, SimulatedNetwork(world), 1).boot().clock
    rig = Rig()
    rig.online()
    refusals = Refusals(structlog.get_logger(), clock.call_later)
    guard = AccessGuard(rig.agent.config, refusals)
    handlers = agent_listener_handlers(
        rig.agent, lambda _request, _reply: None, clock, {}, guard, rig.people()
    )
    administrators = {19, 20, 29, 30, 31, 32, 33, 37, 43, 44, 45, 46, 48, 49, 50, 51, 57}
    assert administrators | {3, 10, 35, 38, 39, 40, 41, 55, 60, 64, 74, 75} == set(handlers)
    assert set(served_versions(handlers)) == {*handlers, 17, 18, 36}
