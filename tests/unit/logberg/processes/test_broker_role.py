"""The agent beside a controller: what it has otherwise than an agent in a process of its own."""

import asyncio
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from broker_agent.agent import AgentCore
from logberg.local.ports import free_port_base
from logberg.processes.broker_role import BrokerRole
from logberg.processes.settings.broker_settings import BrokerSettings
from runtime.logging import configure


@pytest.fixture
def role(tmp_path: Path) -> BrokerRole:
    ports = free_port_base()
    settings = BrokerSettings(
        cluster_id="c",
        broker_id=1,
        data=str(tmp_path / "agent"),
        controllers=(f"http://127.0.0.1:{ports}",),
        http=f"127.0.0.1:{ports + 1}",
        session_ms=1_000,
        heartbeat_ms=200,
        stop_silence_ms=100,
    )
    return BrokerRole(settings, tmp_path / "node.toml", configure("info"))


async def test_an_agent_without_a_quorum_does_not_end_its_node(
    role: BrokerRole, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Time runs 300 times as fast for the agent's limit of 60 s."""
    wake_in = AgentCore._wake_in
    monkeypatch.setattr(AgentCore, "_wake_in", lambda core, ms, act: wake_in(core, ms // 300, act))
    stopping = asyncio.Event()
    running = asyncio.ensure_future(role.run(stopping))
    await asyncio.sleep(0.4)
    assert not running.done()
    stopping.set()
    assert await running == ""


async def test_the_log_says_that_the_role_ends_and_why(role: BrokerRole) -> None:
    stopping = asyncio.Event()
    stopping.set()
    with capture_logs() as logs:
        assert await role.run(stopping) == ""
    named = [(line["event"], line.get("asked")) for line in logs if "role" in line["event"]]
    assert named == [("broker_role_started", None), ("broker_role_ending", True)]
