"""Images from disk and from controllers: complete and right, or not used."""

import pytest

from broker_agent.states import BrokerState
from metadata.records import NoOpRecord
from metadata.uuids import uuid_text
from runtime.http.requests import Reply, Unreachable
from runtime.simulated.disk_faults import SLOW
from tests.unit.broker_agent.fake_cluster import (
    CLUSTER_ID,
    LATENCY_S,
    Log,
    partition,
    snapshot_of,
    topic,
)
from tests.unit.broker_agent.rig import Rig


def filled(topics: int = 40, partitions: int = 10) -> Log:
    log = Log()
    for number in range(1, topics + 1):
        log.append(topic(number), *(partition(number, p, (7, 8), 7) for p in range(partitions)))
    return log


def pieces(rig: Rig) -> list[str]:
    return [a.request.headers["range"] for a in rig.controllers.asked if not a.is_fetch]


# From controllers.


def test_a_snapshot_is_fetched_and_what_comes_behind_it():
    rig = Rig(log=filled())
    rig.active.snapshot = rig.log.snapshot()
    rig.log.fill(5)
    rig.online()
    assert rig.agent.image.same_state(rig.log.image)
    assert rig.agent.catching_up.snapshots_loaded == 1
    assert rig.seen.steps[0] == (0, rig.agent.broker_epoch + 1, rig.agent.broker_epoch + 1, True)
    query = next(a.request.query for a in rig.controllers.asked if not a.is_fetch)
    assert query == {
        "brokerId": "7",
        "brokerEpoch": str(rig.agent.broker_epoch),
        "clusterId": CLUSTER_ID,
        "incarnationId": uuid_text(rig.agent._incarnation_id),
    }


def test_one_that_lags_gets_a_snapshot_while_it_serves_and_is_told_that_it_replaces():
    rig = Rig(log=filled(3))
    rig.online()
    rig.active.silent = True
    rig.run(1.0)
    for number in range(4, 30):
        rig.log.append(topic(number), partition(number, 0, (7,), 7))
    rig.active.snapshot = rig.log.snapshot()
    rig.seen.steps.clear()
    rig.active.silent = False
    rig.run(4.0)
    assert [step[3] for step in rig.seen.steps] == [True]
    assert rig.agent.image.same_state(rig.log.image)
    assert rig.agent.self_fencings == 0


def big_pieces(rig: Rig, monkeypatch, size: int) -> None:
    monkeypatch.setattr("broker_agent.snapshot_download.PIECE_BYTES", size)


def test_a_download_goes_on_where_it_stopped(monkeypatch):
    rig = Rig(log=filled())
    big_pieces(rig, monkeypatch, 1000)
    rig.active.snapshot = rig.log.snapshot()
    size = len(rig.active.snapshot[1])
    whole = rig.active._piece
    left = 3

    def fails_after_three(asked) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            asked.give(Unreachable("reset"))
        else:
            whole(asked)

    rig.active._piece = fails_after_three
    rig.start()
    rig.run(0.04)
    assert rig.state is BrokerState.FENCED
    rig.host.kill()
    rig.boot()
    rig.active.snapshot = snapshot_at(rig, size)
    rig.start()
    rig.run(9.0)
    assert pieces(rig)[0].startswith("bytes=3000-"), "what had arrived was kept"
    assert rig.agent.catching_up.snapshots_loaded == 1


def snapshot_at(rig: Rig, size: int):
    """The snapshot of the first life: it was made before any broker registered."""
    log = filled()
    made = log.snapshot()
    assert made[0].size == size
    return made


def test_fetches_go_on_through_a_slow_download_and_nobody_is_fenced(monkeypatch):
    rig = Rig(log=filled(3))
    big_pieces(rig, monkeypatch, 100)
    rig.online()
    for number in range(4, 40):
        rig.log.append(topic(number), partition(number, 0, (7,), 7))
    rig.active.snapshot = rig.log.snapshot()
    whole = rig.active._piece

    def slow(asked) -> None:
        rig.clock.call_later(2.0, lambda: None if asked.settled else whole(asked))

    rig.active._piece = slow
    rig.active.wake()
    rig.run(25)
    assert rig.agent.catching_up.loading
    assert rig.agent.may_serve()
    assert rig.agent.freshness_s() < 3.0
    assert rig.controllers.last.fetch.max_bytes == 0
    rig.do(rig.agent.stop)
    rig.run(0.1)
    assert rig.controllers.last.fetch.wanted_state.value == "stopping", "said at once"


def test_pieces_alone_renew_no_lease(monkeypatch):
    """Any controller hands out pieces, also one that leads no more."""
    rig = Rig(log=filled(3))
    big_pieces(rig, monkeypatch, 200)
    rig.online()
    for number in range(4, 60):
        rig.log.append(topic(number), partition(number, 0, (7,), 7))
    rig.active.snapshot = rig.log.snapshot()
    whole = rig.active._piece

    def on_ask(asked) -> None:
        if not asked.is_fetch:
            rig.clock.call_later(1.0, lambda: None if asked.settled else whole(asked))

    rig.active.wake()
    rig.run(0.001)
    rig.controllers.on_ask = on_ask
    rig.run(8.0)
    assert len(pieces(rig)) > 5
    assert not rig.agent.may_serve()


@pytest.mark.parametrize("where", [5, 200, -30])
def test_a_flipped_byte_on_the_way_is_found_and_fetched_again(where):
    rig = Rig(log=filled())
    rig.active.snapshot = rig.log.snapshot()
    whole = rig.active._piece
    flipped = 0

    def flip(asked) -> None:
        nonlocal flipped
        if flipped:
            whole(asked)
            return
        flipped += 1
        data = bytearray(rig.active.snapshot[1])
        data[where] ^= 1
        asked.give(Reply(206, bytes(data)))

    rig.active._piece = flip
    rig.start()
    rig.run(5.0)
    assert flipped == 1
    assert rig.state is BrokerState.ONLINE
    assert rig.agent.image.same_state(rig.log.image)


def test_a_snapshot_whose_records_do_not_sum_up_is_not_used():
    rig = Rig(log=filled())
    rig.active.snapshot = snapshot_of(rig.log, bytes(32))
    rig.start()
    rig.run(5.0)
    assert rig.agent.image.offset == 0
    assert rig.state is BrokerState.FENCED
    count = len(pieces(rig))
    assert 3 <= count < 20, "it is tried again, more and more slowly"
    assert rig.disk.list("checkpoints") == []
    rig.active.snapshot = None
    rig.run(9.0)
    assert rig.state is BrokerState.ONLINE


def test_a_snapshot_that_is_gone_is_asked_for_anew():
    rig = Rig(log=filled())
    stale = rig.log.snapshot()
    rig.log.fill(3)
    fresh = rig.log.snapshot()
    rig.active.snapshot = stale
    whole = rig.active._piece

    def gone(asked) -> None:
        rig.active.snapshot = fresh
        rig.active._piece = whole
        asked.give(Reply(404))

    rig.active._piece = gone
    rig.start()
    rig.run(3.0)
    assert rig.state is BrokerState.ONLINE
    assert rig.disk.list("incoming") == []


@pytest.mark.parametrize("status", [404, 416])
def test_a_snapshot_that_is_not_what_it_was_is_fetched_from_its_beginning(monkeypatch, status):
    rig = Rig(log=filled())
    big_pieces(rig, monkeypatch, 1000)
    rig.active.snapshot = rig.log.snapshot()
    whole = rig.active._piece

    def gone_once(asked) -> None:
        if asked.request.headers["range"].startswith("bytes=1000-"):
            rig.active._piece = whole
            asked.give(Reply(status))
        else:
            whole(asked)

    rig.active._piece = gone_once
    rig.start()
    rig.run(5.0)
    begins = [text.partition("-")[0] for text in pieces(rig)]
    assert begins[:3] == ["bytes=0", "bytes=1000", "bytes=0"]
    assert rig.state is BrokerState.ONLINE


def test_a_snapshot_of_what_is_here_already_is_not_loaded():
    rig = Rig(log=filled())
    rig.online()
    old = rig.log.snapshot()
    before = rig.agent.image
    asked = rig.controllers.last
    rig.active.held.clear()
    reply = rig.active.answer(asked.fetch)
    asked.reply(type(reply)(**{**_fields(reply), "snapshot": old[0]}))
    rig.run(5.0)
    assert pieces(rig) == []
    assert rig.agent.image is before
    assert rig.agent.may_serve()


def _fields(reply) -> dict:
    return {name: getattr(reply, name) for name in reply.__struct_fields__}


def test_a_disk_that_is_full_keeps_it_fenced_but_in_contact():
    rig = Rig(log=filled())
    rig.active.snapshot = rig.log.snapshot()
    rig.start()
    rig.host.faults.capacity_bytes = rig.host.platter.used_bytes() + 2_000
    rig.run(20.0)
    assert rig.state is BrokerState.FENCED
    assert rig.agent.freshness_s() < 4.0
    rig.host.faults.capacity_bytes = None
    rig.run(9.0)
    assert rig.state is BrokerState.ONLINE


# From disk.


def test_a_restart_fetches_only_what_it_missed():
    rig = Rig(log=filled())
    rig.online()
    rig.restart()
    saved = rig.log.end
    rig.log.fill(7)
    rig.online()
    first = rig.controllers.fetches[0].fetch
    assert first.fetched_offset == saved
    assert first.fetched_epoch == 1
    assert rig.agent.image.same_state(rig.log.image)


def test_a_saved_image_is_shown_only_when_it_has_caught_up():
    rig = Rig(log=filled())
    rig.online()
    rig.restart()
    rig.log.fill(30)
    rig.seen.steps.clear()
    rig.active.batches_at_once = 4
    rig.online()
    first = rig.seen.steps[0]
    assert first[0] == 0
    assert first[1] > rig.agent.broker_epoch
    assert first[3], "it was loaded, so it replaces"


@pytest.mark.parametrize("where", [10, 300, -10])
def test_a_damaged_saved_image_falls_back_to_fetching(where):
    rig = Rig(log=filled())
    rig.online()
    rig.restart()
    disk = rig.host.disk()
    (name,) = disk.list("checkpoints")
    data = bytearray(disk.read(f"checkpoints/{name}"))
    data[where] ^= 1
    disk.replace(f"checkpoints/{name}", bytes(data))
    rig.online()
    assert rig.controllers.fetches[0].fetch.fetched_offset == 0
    assert rig.agent.image.same_state(rig.log.image)
    assert name not in rig.disk.list("checkpoints")


def test_a_damaged_saved_image_falls_back_to_the_one_before():
    rig = Rig(log=filled(), image_records_between_saves=5)
    rig.online()
    for _ in range(4):
        rig.do(lambda: rig.active.commit(*(NoOpRecord() for _ in range(6))))
        rig.run(1.0)
    older, newest = rig.disk.list("checkpoints")
    rig.host.kill()
    rig.boot()
    disk = rig.host.disk()
    disk.replace(f"checkpoints/{newest}", b"nonsense")
    rig.online()
    assert rig.controllers.fetches[0].fetch.fetched_offset == int(older[:20])


def test_it_saves_now_and_then_and_keeps_two():
    rig = Rig(image_records_between_saves=10)
    rig.online()
    for _ in range(50):
        rig.do(lambda: rig.active.commit(NoOpRecord()))
        rig.run(0.2)
    names = rig.disk.list("checkpoints")
    assert len(names) == 2
    assert int(names[-1][:20]) > 40


def test_it_saves_after_a_while_even_when_little_happens():
    rig = Rig(image_ms_between_saves=30_000)
    rig.online()
    rig.run(31)
    rig.do(lambda: rig.active.commit(NoOpRecord()))
    rig.run(1.0)
    assert len(rig.disk.list("checkpoints")) == 1


def test_a_save_that_fails_does_no_harm_and_is_not_tried_at_every_batch():
    rig = Rig(image_records_between_saves=10)
    rig.online()
    rig.host.faults.capacity_bytes = rig.host.platter.used_bytes()
    steps = rig.host.faults.steps
    for _ in range(50):
        rig.do(lambda: rig.active.commit(NoOpRecord()))
        rig.run(0.05)
    assert rig.agent.may_serve()
    assert rig.host.faults.steps - steps < 40
    rig.host.faults.capacity_bytes = None
    rig.active.may_stop = True
    rig.do(rig.agent.stop)
    rig.run(3.0)
    assert rig.gone[1]
    assert len(rig.disk.list("checkpoints")) == 1


def test_a_save_that_is_under_way_is_waited_for_at_the_end():
    rig = Rig(log=filled(), image_records_between_saves=5)
    rig.online()
    rig.active.may_stop = True
    rig.host.faults.set_profile(SLOW)
    rig.do(lambda: rig.active.commit(*(NoOpRecord() for _ in range(6))))
    rig.run(2 * LATENCY_S)
    rig.do(rig.agent.stop)
    rig.run(5 * LATENCY_S)
    assert rig.state is BrokerState.GONE
    assert not rig.gone, "the disk is busy"
    rig.run(3.0)
    assert rig.gone[1] is True
    assert int(rig.disk.list("checkpoints")[-1][:20]) == rig.log.end


def test_a_kill_at_any_step_of_saving_costs_at_most_a_fetch():
    rig = Rig(log=filled(5), image_records_between_saves=5)
    rig.online()
    for step in range(1, 14):
        rig.host.faults.kill_at(step)
        for _ in range(6):
            if not rig.host.running:
                break
            rig.do(lambda: rig.active.commit(*(NoOpRecord() for _ in range(6))))
            rig.run(0.5)
        if rig.host.running:
            rig.host.kill()
        rig.host.lose_power()
        rig.boot()
        rig.host.faults.spare()
        rig.online()
        assert rig.agent.image.same_state(rig.log.image)
