"""From registration to the end: what the agent sends, and how it follows the answers."""

import pytest

from broker_agent.image_store import WrongFolderError
from broker_agent.states import BrokerState
from metadata.errors import ErrorCode
from metadata.messages.fetch import SeenState, WantedState
from metadata.records import BeginEpochRecord, NoOpRecord
from runtime.disk.interface import FolderInUseError
from runtime.simulated.disk_faults import STUCK
from tests.unit.broker_agent.fake_cluster import BROKER, Log
from tests.unit.broker_agent.rig import ONE, THREE, TWO, Rig

OFFLINE, FENCED, ONLINE, STOPPING, GONE = BrokerState


def test_it_registers_catches_up_and_comes_online():
    rig = Rig()
    rig.log.fill(5)
    rig.online()
    assert [state for state, _ in rig.states] == [FENCED, ONLINE]
    first, second = rig.controllers.fetches[:2]
    assert first.fetch.broker_epoch == -1
    assert first.fetch.registration.endpoints[0].host == "here"
    assert first.fetch.wanted_state is WantedState.FENCED
    assert second.fetch.broker_epoch == rig.agent.broker_epoch == 5
    assert second.fetch.registration is None
    assert second.fetch.wanted_state is WantedState.ONLINE
    assert second.fetch.applied_offset == 6
    assert rig.agent.image.offset == rig.log.end


def test_it_stays_fenced_until_its_own_registration_is_in_its_image():
    rig = Rig()
    rig.log.fill(30)
    rig.active.batches_at_once = 1
    rig.active.may_unfence = False
    rig.start()
    rig.run(5.0)
    asked = [(a.fetch.wanted_state, a.fetch.applied_offset) for a in rig.controllers.fetches]
    assert all(applied == 0 for wanted, applied in asked if wanted is WantedState.FENCED)
    assert asked[-1] == (WantedState.ONLINE, 31)
    assert rig.state is FENCED
    assert rig.seen.steps == [(0, 31, 31, False)], "readers see an image only when it is whole"


def test_a_busy_log_does_not_keep_it_out():
    rig = Rig()
    rig.log.fill(3)
    on_ask = rig.controllers.on_ask

    def busy(asked) -> None:
        rig.log.fill(2)
        on_ask(asked)

    rig.controllers.on_ask = busy
    rig.active.batches_at_once = 3
    rig.online()


def test_a_host_that_is_not_ready_stays_fenced():
    rig = Rig()
    rig.do(lambda: rig.agent.set_host_ready(ready=False))
    rig.start()
    rig.run(10.0)
    assert rig.state is FENCED
    assert {a.fetch.wanted_state for a in rig.controllers.fetches} == {WantedState.FENCED}
    rig.do(lambda: rig.agent.set_host_ready(ready=True))
    rig.run(0.5)
    assert rig.state is ONLINE
    rig.states.clear()
    rig.do(lambda: rig.agent.set_host_ready(ready=False))
    assert rig.states == [(FENCED, False)], "at once, before anybody was asked"
    rig.run(0.5)
    assert rig.log.image.cluster.brokers[BROKER].fenced
    assert rig.state is FENCED


def test_an_answer_to_an_older_wish_does_not_bring_it_online():
    rig = Rig()
    rig.online()
    rig.active.says = SeenState.ONLINE
    rig.do(lambda: rig.agent.set_host_ready(ready=False))
    rig.run(3.0)
    assert rig.state is FENCED


def test_told_fenced_it_stops_serving_and_asks_to_come_back():
    rig = Rig()
    rig.online()
    epoch = rig.agent.broker_epoch
    rig.active.may_unfence = False
    rig.states.clear()
    rig.do(rig.active.fence)
    rig.run(0.1)
    assert rig.states == [(FENCED, False)]
    rig.active.may_unfence = True
    rig.run(3.0)
    assert rig.state is ONLINE
    assert rig.agent.broker_epoch == epoch


@pytest.mark.parametrize("code", [ErrorCode.STALE_BROKER_EPOCH, ErrorCode.INCONSISTENT_CLUSTER_ID])
def test_who_has_no_place_in_the_cluster_fences_itself_and_leaves(code):
    rig = Rig()
    rig.online()
    rig.states.clear()
    rig.active.silent = True
    rig.controllers.last.refuse(code, "go away", leader_epoch=1)
    rig.run(0.1)
    assert rig.states == [(GONE, False)]
    assert rig.gone[1] is False
    assert "go away" in rig.gone[0]
    count = len(rig.controllers.asked)
    rig.run(60)
    assert len(rig.controllers.asked) == count


def test_another_process_with_its_id_sends_it_away():
    rig = Rig()
    rig.online()
    other = Rig(seed=2, log=rig.log)
    other.online()
    rig.active.wake()
    rig.run(3.0)
    assert rig.state is GONE
    assert "STALE_BROKER_EPOCH" in rig.gone[0]
    assert other.agent.may_serve()


def test_a_foreign_cluster_sends_it_away_at_registration():
    rig = Rig(cluster_id="another-cluster")
    rig.start()
    rig.run(1.0)
    assert rig.state is GONE
    assert "INCONSISTENT_CLUSTER_ID" in rig.gone[0]
    assert not rig.gone[1]


def test_a_deposed_controller_cannot_send_it_away():
    """One that leads no more doesn't know of registrations since."""
    rig = Rig(urls=(ONE, TWO))
    rig.active.epoch = 5
    rig.online()
    rig.active.silent = True
    rig.controllers.last.refuse(ErrorCode.STALE_BROKER_EPOCH, leader_epoch=4)
    rig.run(0.1)
    assert rig.state is ONLINE
    rig.active.silent = False
    rig.run(10.0)
    assert rig.agent.may_serve()


def test_an_answer_for_an_older_epoch_is_refused_and_renews_nothing():
    rig = Rig(urls=(ONE, TWO))
    rig.active.epoch = 5
    rig.online()
    offset = rig.agent.image.offset
    age = rig.agent.freshness_s()
    rig.active.silent = True
    asked = rig.controllers.last
    rig.log.fill(1)
    rig.active.epoch = 4
    asked.reply(rig.active.answer(asked.fetch))
    rig.run(0.1)
    assert rig.agent.image.offset == offset
    assert rig.agent.freshness_s() == pytest.approx(age + 0.1)
    assert "which is over" in rig.agent.fetches.last_problem


def test_an_answer_for_another_broker_epoch_is_refused():
    rig = Rig()
    rig.online()
    rig.active.silent = True
    asked = rig.controllers.last
    age = rig.agent.freshness_s()
    reply = rig.active.answer(asked.fetch)
    asked.reply(type(reply)(broker_epoch=99, state=reply.state, leader_epoch=1))
    rig.run(1.0)
    assert rig.agent.freshness_s() == pytest.approx(age + 1.0)


def test_controlled_shutdown_waits_until_it_may_go_and_saves_first():
    rig = Rig()
    rig.online()
    rig.log.fill(3)
    rig.do(rig.agent.stop)
    rig.run(0.2)
    assert rig.controllers.last.fetch.wanted_state is WantedState.STOPPING
    assert rig.agent.may_serve()
    rig.run(20)
    assert not rig.gone
    rig.active.may_stop = True
    rig.run(3)
    assert rig.state is GONE
    assert rig.gone[1] is True
    names = rig.disk.list("checkpoints")
    assert [name[:20] for name in names] == [f"{rig.log.end:020d}"]


def test_a_stop_during_a_held_fetch_is_said_at_once():
    rig = Rig()
    rig.online()
    rig.run(0.5)
    held = rig.controllers.last
    assert held.fetch.max_wait_ms == 2000
    rig.do(rig.agent.stop)
    assert held.abandoned
    rig.run(0)
    assert rig.controllers.last.fetch.max_wait_ms == 0


def test_its_own_limit_ends_a_shutdown_that_nobody_grants():
    rig = Rig(stop_limit_ms=20_000)
    rig.online()
    rig.do(rig.agent.stop)
    rig.run(5)
    rig.do(rig.agent.stop)  # a second signal changes nothing
    rig.run(14.9)
    assert not rig.gone
    rig.run(0.2)
    reason, orderly = rig.gone
    assert "was not finished after 20 s (stop_limit_ms); leaders may not have moved" in reason
    assert not orderly


@pytest.mark.parametrize("fenced", [False, True])
def test_a_stop_ends_when_no_active_controller_answers(fenced):
    rig = Rig()
    rig.active.may_unfence = not fenced
    rig.start()
    rig.run(1)
    rig.active.silent = True
    rig.do(rig.agent.stop)
    rig.run(3.9)
    assert not rig.gone
    rig.run(0.2)
    assert rig.gone is not None
    assert rig.gone[0].startswith(
        "the controlled shutdown was cut short: no active controller has answered for 4"
    )
    assert rig.gone[1] is False


def test_silence_counts_from_the_last_answer():
    rig = Rig()
    rig.online()
    rig.do(rig.agent.stop)
    rig.run(10)
    rig.active.silent = True
    rig.run(1.5)
    rig.active.silent = False  # a failover
    rig.run(10)
    assert not rig.gone
    rig.active.silent = True
    rig.run(6.5)
    assert rig.gone is not None


def test_a_fenced_broker_that_stops_serves_nobody():
    rig = Rig()
    rig.active.may_unfence = False
    rig.start()
    rig.run(1)
    rig.do(rig.agent.stop)
    assert rig.state is STOPPING
    assert not rig.agent.may_serve()
    rig.run(1)
    assert rig.gone[1] is True, "the controller lets a fenced one go at once"


def test_a_stop_before_registration_is_the_end():
    rig = Rig()
    rig.active.silent = True
    rig.start()
    rig.run(1.0)
    assert rig.state is OFFLINE
    rig.do(rig.agent.stop)
    rig.run(0.1)
    assert rig.state is GONE
    assert rig.gone == ("stopped before it was registered", True)


def test_a_stuck_disk_does_not_keep_it_from_leaving():
    rig = Rig()
    rig.online()
    rig.log.fill(3)
    rig.active.may_stop = True
    rig.host.faults.set_profile(STUCK)
    rig.do(rig.agent.stop)
    rig.run(9.0)
    assert not rig.gone
    rig.run(3.0)
    assert rig.gone[1] is True


def test_no_registration_in_a_minute_is_the_end():
    rig = Rig()
    rig.active.silent = True
    rig.start()
    rig.run(59.9)
    assert not rig.gone
    rig.run(0.2)
    assert rig.gone[1] is False
    assert "not registered within 60 s" in rig.gone[0]
    assert "no answer" in rig.gone[0]


def test_a_duplicate_id_is_tried_until_the_first_is_gone():
    rig = Rig()
    taken = True

    def on_ask(asked) -> None:
        if taken:
            asked.refuse(ErrorCode.DUPLICATE_BROKER_REGISTRATION, "taken", leader_epoch=1)
        else:
            rig.active.on_ask(asked)

    rig.controllers.on_ask = on_ask
    rig.start()
    rig.run(9.0)
    assert rig.state is OFFLINE
    assert 9 <= len(rig.controllers.fetches) < 60, "often enough, and not a storm"
    taken = False
    rig.run(2.0)
    assert rig.state is ONLINE


def test_a_duplicate_id_that_stays_is_the_end_with_its_reason():
    rig = Rig()
    rig.controllers.on_ask = lambda asked: asked.refuse(
        ErrorCode.DUPLICATE_BROKER_REGISTRATION, "taken", leader_epoch=1
    )
    rig.start()
    rig.run(60.1)
    assert rig.gone[1] is False
    assert "DUPLICATE_BROKER_REGISTRATION: taken" in rig.gone[0]


def test_a_registration_whose_answer_was_lost_is_repeated_by_the_same_incarnation():
    rig = Rig()
    rig.controllers.on_ask = lambda asked: rig.active._register(asked.fetch)
    rig.start()
    rig.run(0.5)
    first_epoch = rig.log.image.cluster.brokers[BROKER].broker_epoch
    rig.controllers.on_ask = rig.active.on_ask
    rig.run(3.0)
    assert rig.state is ONLINE
    assert rig.agent.broker_epoch == first_epoch


def test_a_registration_that_is_under_way_is_not_given_up_for_a_wish():
    rig = Rig()
    rig.active.silent = True
    rig.start()
    rig.run(0.1)
    rig.do(lambda: rig.agent.set_host_ready(ready=False))
    rig.do(lambda: rig.agent.set_host_ready(ready=True))
    assert len(rig.controllers.fetches) == 1
    assert not rig.controllers.last.abandoned


def test_a_slow_commit_of_a_registration_is_waited_for():
    """Each registration costs a commit: giving up too early would never succeed."""
    rig = Rig()

    def slow(asked) -> None:
        request = asked.fetch
        if request.broker_epoch < 0:
            rig.active._register(request)
            asked.reply(rig.active.answer(request), after_s=3.0)
        else:
            rig.active.on_ask(asked)

    rig.controllers.on_ask = slow
    rig.start()
    rig.run(12.0)
    assert rig.state is ONLINE


def test_a_host_that_fails_does_not_end_the_heartbeats():
    rig = Rig()
    rig.host_fails = True
    rig.start()
    rig.run(30)
    assert rig.state is ONLINE
    assert rig.agent.may_serve()


def test_a_publisher_may_stop_the_agent():
    rig = Rig()

    class Stopper:
        def on_metadata(self, before, after, manifest) -> None:
            rig.agent.stop()

    rig.agent.view._publishers += (Stopper(),)
    rig.active.may_stop = True
    rig.start()
    rig.run(5)
    assert rig.gone[1] is True


def test_two_agents_cannot_share_a_folder():
    rig = Rig()
    rig.start()
    with pytest.raises(FolderInUseError):
        rig.host.disk().lock()


@pytest.mark.parametrize("changed", [{"cluster_id": "another"}, {"broker_id": 8}])
def test_a_folder_of_another_is_refused(changed):
    rig = Rig()
    rig.online()
    rig.restart()
    rig.host.kill()
    rig.boot(**changed)
    with pytest.raises(WrongFolderError, match="belongs to broker 7"):
        rig.agent.start()


def test_a_new_leader_is_followed_and_nobody_is_fenced():
    rig = Rig(urls=(ONE, TWO, THREE))
    rig.online()
    rig.active.silent = True
    rig.active.held.clear()
    rig.run(1.5)
    rig.active.silent = False
    rig.active.epoch = rig.log.epoch = 2
    rig.active.url = THREE
    rig.log.append(BeginEpochRecord(3, (), ()))
    rig.log.append(NoOpRecord())
    rig.run(3.0)
    assert rig.agent.self_fencings == 0
    assert rig.agent.image.offset == rig.log.end
    assert rig.agent.fetches.leader_epoch == 2
    assert rig.agent.controller_url == THREE


def test_a_log_of_another_cluster_is_not_followed():
    rig = Rig()
    rig.active.log = Log("forged")
    rig.active.log.cluster_id = rig.settings["cluster_id"]
    rig.start()
    rig.run(5.0)
    assert rig.agent.image.offset == 0
    assert rig.state is FENCED
