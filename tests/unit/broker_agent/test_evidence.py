"""A broker that saw more than the cluster has keeps what it saw, and says so."""

import json

import pytest

from broker_agent.evidence import KEPT_MAX
from broker_agent.health import health_of
from broker_agent.states import BrokerState
from metadata.messages.fetch import Divergence, StateAt
from metadata.steps import finished
from snapshots.checkpoint import CheckpointId
from snapshots.store import load_steps
from tests.unit.broker_agent.fake_cluster import like, topic
from tests.unit.broker_agent.rig import Rig


@pytest.fixture
def rig() -> Rig:
    rig = Rig()
    rig.log.append(topic(1))
    rig.log.fill(4)
    rig.online()
    rig.run(1.0)
    return rig


def lie_once(rig: Rig, **changes) -> None:
    asked = rig.controllers.last
    rig.active.held.clear()
    asked.reply(like(rig.active.answer(asked.fetch), **changes))


def notes(rig: Rig) -> list[str]:
    return [name for name in rig.disk.list("evidence") if name.endswith(".json")]


def test_a_broker_that_saw_more_than_survived_keeps_it_and_says_so(rig):
    before, mark = rig.agent.image, rig.agent.view.mark
    lie_once(rig, diverging=Divergence(epoch=1, end_offset=3), batches=())
    rig.run(0.01)
    last = mark.log_end - 1
    assert (
        f"the cluster lost or replaced offsets 3 to {last}, which this broker" in rig.agent.reason
    )
    rig.run(3.0)
    assert rig.state is BrokerState.ONLINE, "it follows the cluster again"
    [note] = notes(rig)
    kept = json.loads(rig.disk.read(f"evidence/{note}"))
    assert kept["head"] == mark.head.hex()
    assert (kept["offset"], kept["epoch"]) == (mark.log_end, mark.epoch)
    assert "lost or replaced" in kept["why"]
    assert health_of(rig.agent).evidence == f"evidence/{note}"
    image = CheckpointId(mark.log_end, mark.epoch)
    assert image.name in rig.disk.list("evidence")
    data = rig.disk.read(f"evidence/{image.name}")
    rig.host.platter.put(f"checkpoints/{image.name}", data)
    loaded = finished(load_steps(rig.disk, None, image))
    assert loaded.header.chain_hash == mark.head
    assert before.offset == mark.log_end


def test_what_was_saved_before_is_moved_and_never_loaded_again(rig):
    rig.restart()
    rig.online()
    saved = rig.disk.list("checkpoints")
    assert saved
    lie_once(rig, diverging=Divergence(epoch=1, end_offset=3), batches=())
    rig.run(0.01)
    assert rig.disk.list("checkpoints") == []
    assert set(saved) <= set(rig.disk.list("evidence"))
    rig.run(3.0)
    kept = notes(rig)
    rig.restart()
    rig.online()
    assert health_of(rig.agent).evidence == f"evidence/{kept[0]}"


def test_a_difference_that_returns_does_not_fill_the_disk(rig):
    for number in range(KEPT_MAX):
        rig.host.platter.put(f"evidence/{number:020d}-0000000001.json", b"{}")
    count = len(rig.disk.list("evidence"))
    lie_once(rig, diverging=Divergence(epoch=1, end_offset=3), batches=())
    rig.run(3.0)
    assert len(rig.disk.list("evidence")) == count
    assert rig.state is BrokerState.ONLINE


def test_a_disk_that_takes_no_evidence_does_not_keep_the_broker_out(rig):
    rig.host.faults.fail("create", lasting=True)
    right = rig.log.state_at(rig.log.end)
    wrong = StateAt(offset=right.offset, chain_hash=right.chain_hash, state_hash=bytes(32))
    lie_once(rig, state_hash=wrong)
    rig.run(0.5)
    rig.host.faults.succeed()
    rig.run(3.0)
    assert rig.state is BrokerState.ONLINE
    assert notes(rig) == []
