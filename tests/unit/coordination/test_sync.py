"""The interfaces for threads, over the store in memory and real time."""

import threading
import time

import pytest

from coordination.errors import (
    Compacted,
    ConfigError,
    DeadlineExceeded,
    Fenced,
    KeyExists,
    SessionClosed,
    SessionLost,
)
from coordination.loop_thread import LoopThread
from coordination.sync import connect_sync
from coordination.types import Revision, SessionState
from tests.unit.coordination.virtual_loop import store_of


def test_each_interface_works_from_a_thread() -> None:
    with connect_sync("memory://sync", namespace="n") as a, connect_sync("memory://sync") as b:
        first = a.storage.put("k/1", "v")
        assert a.storage.fetch("k/1").value == b"v"
        assert [r.key for r in b.storage.list()] == ["n/k/1"]
        with pytest.raises(KeyExists):
            a.storage.put("k/1", "w")
        assert a.storage.commit(a.storage.txn().check("k/1", first).update("k/1", "2")) > first
        assert a.storage.snapshot("k")[1]["k/1"].version == 2
        assert a.group("g").join("m", b"d") > 0
        assert b.group("n/g").membership()["m"].data == b"d"
        assert a.group("g").update("m", "e") > 0
        assert a.group("g").leave("m")
        term = a.election("s").nominate("A")
        assert b.election("n/s").get_leader().id == "A"
        a.storage.upsert("k/1", "fenced", fence=term)
        assert a.election("s").resign("A")
        with pytest.raises(Fenced):
            a.storage.upsert(
                "k/1", "late", fence=int(term.token), resource=a.election("s").resource
            )
        assert a.storage.delete("k/1")


def test_a_campaign_and_a_lock_end_with_their_bodies() -> None:
    with connect_sync("memory://sync-bodies") as a, connect_sync("memory://sync-bodies") as b:
        with a.election("s").campaign("A") as term, a.lock("l").held() as grant:
            term.check()
            assert grant.held
            with pytest.raises(DeadlineExceeded), b.election("s").campaign("B", timeout=0.05):
                pass
            assert b.lock("l").try_acquire() is None
        assert b.election("s").get_leader() is None
        taken = b.lock("l").try_acquire()
        assert b.lock("l").release(taken)
        assert not b.lock("l").release(taken)


def test_threads_of_one_client_exclude_one_another() -> None:
    inside, seen = [], []
    with connect_sync("memory://sync-threads") as a:

        def work() -> None:
            for _ in range(20):
                with a.lock("l").held():
                    inside.append(1)
                    seen.append(len(inside))
                    inside.pop()

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert seen == [1] * 80


def test_watches_and_listeners_reach_a_thread() -> None:
    told = threading.Event()
    with connect_sync("memory://sync-watch") as a:
        a.listeners.add_value_change_listener("k", lambda v: told.set() if v == b"2" else None)
        with a.storage.watch("k") as events:
            assert next(events).record is None
            a.storage.put("k", "1")
            a.storage.update("k", "2")
            assert [next(events).record.value for _ in range(2)] == [b"1", b"2"]
        assert told.wait(10)
        with a.storage.watch_prefix("", after=Revision(0)) as events:
            assert next(events).kind == "put"


def test_what_is_closed_says_so() -> None:
    a = connect_sync("memory://sync-closed")
    storage = a.storage
    a.close()
    a.close()
    with pytest.raises((SessionClosed, RuntimeError)):
        storage.fetch("k")
    with pytest.raises(ConfigError):
        connect_sync("nonsense://host")


def test_a_grant_is_over_for_every_thread_while_the_loop_is_held() -> None:
    with connect_sync("memory://sync-held", ttl=0.4) as a, a.lock("l").held() as grant:
        grant.check()
        blocking = threading.Thread(target=a._thread.call, args=(lambda: time.sleep(1.0),))
        blocking.start()
        time.sleep(0.6)
        with pytest.raises(SessionLost):
            grant.check()
        assert not grant.held
        assert a.session.state is SessionState.LOST
        blocking.join(10)
        assert grant.lost.is_set()


def test_the_loops_own_thread_is_told_that_it_cannot_wait() -> None:
    thread = LoopThread()

    async def nothing() -> None:
        """Do nothing."""

    def wait_for_itself() -> None:
        thread.run(nothing())

    with pytest.raises(RuntimeError, match="can't wait for itself"):
        thread.call(wait_for_itself)
    thread.close()
    thread.close()
    with pytest.raises(RuntimeError, match="is closed"):
        thread.run(nothing())


def test_a_semaphore_has_so_many_holders() -> None:
    with connect_sync("memory://sync-semaphore") as a, connect_sync("memory://sync-semaphore") as b:
        permits = a.semaphore("s", 2)
        first = permits.acquire()
        with b.semaphore("s", 2).held(timeout=1.0) as second:
            assert [each.token for each in permits.holders()] == [first.token, second.token]
            assert permits.try_acquire() is None
        assert permits.release(first)
        assert not permits.break_()


def test_a_watch_can_be_read_afresh_and_resumed_and_a_strict_one_tells_of_gaps() -> None:
    with connect_sync("memory://sync-watches") as a:
        first = a.storage.put("k/1", b"1")
        with a.storage.watch("k/1") as events:
            assert next(events).revision == events.revision == first
            assert events.resync().kind == "resync"
        second = a.storage.update("k/1", b"2")
        with a.storage.watch_prefix("k", after=first) as events:
            assert next(events).revision == second
        with a.storage.watch_keys("k") as keys:
            assert next(keys).keys == {"k/1"}
        a.storage.update("k/1", b"3")
        store_of(a._coordinator).compact(Revision(second + 1))
        with a.storage.watch("k/1", after=first, strict=True) as events:
            with pytest.raises(Compacted):
                next(events)
            assert events.resync().record.value == b"3"


def test_a_leader_says_something_new() -> None:
    with connect_sync("memory://sync-proclaim") as a:
        election = a.election("s")
        with election.campaign("A", b"1") as term, election.watch(strict=True) as events:
            assert next(events).leader.data == b"1"
            election.proclaim(term, b"2")
            assert next(events).leader.data == b"2"
