"""Compaction, and the catch-up of a follower that is too far behind for entries."""

from typing import Any

import pytest

from quorum.api import Mark, Voter
from quorum.journal.manifest import JournalManifest, decode_manifest, encode_manifest
from quorum.wire.frames import FrameKind
from tests.unit.quorum.bench import CLUSTER, DIRECTORIES, Bench, entry

VOTERS = (Voter(node_id=2, directory_id=DIRECTORIES[2], host="h", port=1),)


def manifest(
    index: int, term: int, data: bytes = b"mark", cluster: str = CLUSTER
) -> JournalManifest:
    return JournalManifest(
        cluster_id=cluster,
        first=entry(index - 1, term),
        second=entry(index, term),
        mark_data=data,
        voters=VOTERS,
        directory_id=DIRECTORIES[2],
        journal_position=12345,
    )


def offer(bench: Bench, number: int, term: int, what: JournalManifest) -> None:
    bench.say(number, FrameKind.SNAPSHOT, term, what.second[1], encode_manifest(what))


@pytest.fixture
def behind() -> Bench:
    """Holds entries 2 to 4 of term 1, and is offered what is behind index 100."""
    bench = Bench()
    bench.append(2, 1, 3, 1, 0, 1, 1, 1)
    bench.synced()
    bench.taken()
    offer(bench, 2, 1, manifest(100, 1))
    bench.synced()
    return bench


MARK = Mark(100, 1, b"mark")


def test_the_owner_is_asked_and_the_core_sees_nothing(behind: Bench) -> None:
    assert behind.heard.events[-1] == ("install", MARK, 2)
    assert behind.taken(FrameKind.ACK) == [(2, (-1, 0, True))]
    assert behind.terms == [0, 1, 1, 1]
    assert "index 100" in behind.node.status().note


def test_appends_beyond_our_log_are_answered_with_neither_success_nor_reset(
    behind: Bench,
) -> None:
    behind.taken()
    behind.append(2, 1, 101, 100, 1, 1)
    assert behind.taken(FrameKind.ACK) == [(2, (-1, 0, True))]
    assert behind.commit == 3


def test_another_leader_is_told_where_we_are(behind: Bench) -> None:
    behind.taken()
    behind.append(3, 2, 101, 100, 1, 2)
    behind.synced()
    assert behind.taken(FrameKind.ACK) == [(3, (-1, 5, True))]


def test_installed_makes_the_manifest_ours_and_the_log_begin_there(behind: Bench) -> None:
    behind.taken()
    behind.call(behind.node.caught_up, MARK)
    behind.synced()
    assert behind.heard.events[-1] == ("installed", MARK)
    assert behind.taken(FrameKind.ACK) == [(2, (100, 0, True))]
    assert behind.node.context.view.first == 99
    behind.append(2, 1, 101, 100, 1, 1)
    behind.synced()
    assert behind.heard.payloads()[-1] == b"101/1"
    written = decode_manifest(behind.disk.read("manifest"))
    assert written.directory_id == behind.node.context.journal.directory_id


def test_a_crash_after_the_commit_point_is_finished_at_the_next_start(behind: Bench) -> None:
    behind.call(behind.node.caught_up, MARK)
    while not behind.disk.exists("manifest"):
        assert behind.world.run(1) is False
    behind.host.kill()
    behind.boot()
    assert behind.mark == MARK
    assert behind.node.context.view.first == 99
    assert behind.commit == 100
    assert behind.term == 1


def test_a_crash_before_it_leaves_the_log_as_it_was(behind: Bench) -> None:
    behind.stick_disk()
    behind.call(behind.node.caught_up, MARK)
    behind.host.lose_power()
    behind.boot()
    assert behind.mark is None
    assert behind.terms == [0, 1, 1, 1]


def test_appends_that_come_while_the_manifest_is_written_wait(behind: Bench) -> None:
    behind.taken()
    behind.stick_disk()
    behind.call(behind.node.caught_up, MARK)
    behind.append(2, 1, 4, 4, 1, 1)
    assert behind.terms == [0, 1, 1, 1]
    assert behind.taken(FrameKind.ACK) == [(2, (-1, 0, True))]
    behind.free_disk()
    assert behind.heard.events[-1] == ("installed", MARK)


def test_a_later_mark_or_another_source_replaces_the_first(behind: Bench) -> None:
    offer(behind, 3, 2, manifest(200, 2, b"later"))
    later = Mark(200, 2, b"later")
    assert behind.heard.events[-1] == ("install", later, 3)
    behind.call(behind.node.caught_up, MARK)
    behind.synced()
    assert behind.terms == [0, 1, 1, 1]
    behind.call(behind.node.caught_up, later)
    behind.synced()
    assert behind.heard.events[-1] == ("installed", later)


def test_the_same_offer_again_asks_nobody_again(behind: Bench) -> None:
    before = behind.heard.kinds().count("install")
    offer(behind, 2, 1, manifest(100, 1))
    assert behind.heard.kinds().count("install") == before


def test_a_mark_that_is_out_of_reach_lets_the_leader_offer_its_present_one(behind: Bench) -> None:
    before = behind.heard.kinds().count("install")
    behind.taken()
    behind.call(behind.node.out_of_reach, MARK)
    behind.append(2, 1, 101, 100, 1, 1)
    assert behind.taken(FrameKind.ACK) == [(2, (-1, 5, True))]
    offer(behind, 2, 1, manifest(100, 1))
    assert behind.heard.kinds().count("install") == before
    behind.taken()
    behind.append(2, 1, 101, 100, 1, 1)
    assert behind.taken(FrameKind.ACK) == [(2, (-1, 0, True))]
    behind.call(behind.node.out_of_reach, MARK)
    behind.append(2, 1, 201, 200, 1, 1)
    later = Mark(200, 1, b"later")
    offer(behind, 2, 1, manifest(200, 1, later.data))
    assert behind.heard.events[-1] == ("install", later, 2)
    behind.call(behind.node.caught_up, later)
    behind.synced()
    assert behind.heard.events[-1] == ("installed", later)


def test_only_the_mark_that_is_fetched_can_be_out_of_reach(behind: Bench) -> None:
    behind.taken()
    behind.call(behind.node.out_of_reach, Mark(99, 1, b"another"))
    behind.append(2, 1, 101, 100, 1, 1)
    assert behind.taken(FrameKind.ACK) == [(2, (-1, 0, True))]
    behind.call(behind.node.out_of_reach, MARK)
    behind.call(behind.node.caught_up, MARK)
    behind.synced()
    assert behind.heard.events[-1] == ("installed", MARK)


def test_what_ordinary_entries_overtake_is_dropped() -> None:
    bench = Bench()
    bench.append(2, 1, 3, 1, 0, 1, 1, 1)
    offer(bench, 2, 1, manifest(6, 1))
    bench.append(3, 2, 3, 4, 1, 1, 1, 2)
    bench.synced()
    assert bench.heard.kinds()[-2:] == ["dropped", "leader"] or "dropped" in bench.heard.kinds()
    bench.call(bench.node.caught_up, Mark(6, 1, b"mark"))
    bench.synced()
    assert bench.terms == [0, 1, 1, 1, 1, 1, 2]


def test_a_log_that_holds_the_marks_entry_is_never_cleared() -> None:
    """The entries after it may have been acknowledged."""
    bench = Bench()
    bench.append(2, 1, 2, 1, 0, 1, 1, 1, 1)
    bench.synced()
    bench.taken()
    offer(bench, 2, 1, manifest(4, 1))
    assert "install" not in bench.heard.kinds()
    assert bench.taken(FrameKind.ACK) == [(2, (4, 0, True))]
    offer(bench, 2, 1, manifest(2, 1))
    assert bench.taken(FrameKind.ACK) == [(2, (2, 0, True))]
    assert bench.terms == [0, 1, 1, 1, 1]


@pytest.mark.parametrize("wrong", ["bytes", "cluster"])
def test_a_manifest_that_is_not_one_is_refused(wrong: str) -> None:
    bench = Bench()
    bench.append(2, 1, 1, 1, 0)
    if wrong == "bytes":
        bench.say(2, FrameKind.SNAPSHOT, 1, 9, b"not a manifest")
    else:
        offer(bench, 2, 1, manifest(100, 1, cluster="another"))
    assert "install" not in bench.heard.kinds()


def test_an_offer_of_an_older_term_is_refused() -> None:
    bench = Bench()
    bench.append(2, 5, 1, 1, 0)
    offer(bench, 3, 4, manifest(100, 4))
    assert "install" not in bench.heard.kinds()


# The leader's side.


def compacting(**settings: Any) -> Bench:
    bench = Bench(tail_bytes=0, **settings)
    bench.lead()
    for number in range(10):
        bench.call(bench.node.propose, bytes([number]) * 100)
        bench.synced()
        bench.ack(2)
    bench.taken()
    return bench


def compact(bench: Bench, index: int, data: bytes = b"m") -> list[bool]:
    done: list[bool] = []
    bench.call(bench.node.compact, Mark(index, bench.term, data), done.append)
    bench.settle(0.1)
    bench.ack(2)
    return done


def test_compaction_keeps_the_marks_entry_and_the_one_before() -> None:
    bench = compacting()
    assert compact(bench, 8) == [True]
    assert bench.node.context.view.first == 7
    assert decode_manifest(bench.disk.read("manifest")).mark == Mark(8, bench.term, b"m")
    bench.host.lose_power()
    bench.boot()
    assert bench.mark == Mark(8, 1, b"m")
    bench.settle(0.1)
    assert [event[1] for event in bench.heard.events if event[0] == "committed"][:1] in ([9], [])


def test_the_journal_is_not_cut_before_the_manifest_is_durable() -> None:
    bench = compacting()
    bench.stick_disk()
    done: list[bool] = []
    bench.call(bench.node.compact, Mark(8, bench.term, b"m"), done.append)
    bench.settle(0.2)
    assert (done, bench.node.context.view.first) == ([], 1)


def test_a_tail_is_kept_and_the_cut_made_at_an_older_mark() -> None:
    bench = Bench(tail_bytes=500)
    bench.lead()
    for number in range(20):
        bench.call(bench.node.propose, bytes([number]) * 100)
        bench.synced()
        bench.ack(2)
        compact(bench, bench.node.context.view.last)
    first, last = bench.node.context.view.first, bench.node.context.view.last
    assert first > 1
    assert 500 <= bench.node.context.journal.bytes_after(first + 1) < 1_000
    assert last - first < 8


@pytest.mark.parametrize("index", [1, 40])
def test_a_mark_that_makes_no_sense_is_refused(index: int) -> None:
    assert compact(compacting(), index) == [False]


def test_a_mark_of_another_epoch_is_refused() -> None:
    bench = compacting()
    done: list[bool] = []
    bench.call(bench.node.compact, Mark(8, bench.term + 1, b""), done.append)
    assert done == [False]


def test_a_follower_that_asks_for_what_is_gone_gets_the_manifest_and_what_follows() -> None:
    bench = compacting()
    compact(bench, 8)
    bench.taken()
    bench.say(3, FrameKind.ACK, bench.term, -1, 3, True)
    bench.settle(0.15)
    bench.ack(2)
    sent = bench.taken()
    offers = [fields for _, fields in bench_kind(sent, 3) if len(fields) == 2]
    assert decode_manifest(offers[0][1]).mark.index == 8
    later = [fields for _, fields in bench_kind(sent, 3) if len(fields) == 4 and fields[3]]
    assert later[0][1] == 8


def bench_kind(sent: list[tuple[int, tuple[object, ...]]], number: int) -> list[tuple[int, tuple]]:
    return [(n, fields) for n, fields in sent if n == number]
