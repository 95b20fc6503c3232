"""Freshness comes from echoes of the node's own clock, never from the arrival of a message."""

import pytest

from quorum.wire.frames import FrameKind, encode
from tests.unit.quorum.bench import Bench

US = 1_000_000
FRESH = b"w" * 16


def now_us(bench: Bench) -> int:
    return int(bench.process.clock.monotonic() * US)


def digest(bench: Bench, number: int, echo: int, **other: int) -> None:
    """A peer's digest, which gives back a reading of our clock."""
    said = {"term": bench.term, "index": 0, "age": -1, "counted": 1} | other
    bench.say(
        number,
        FrameKind.DIGEST,
        said["term"],
        b"d",
        5 * US,
        echo,
        said["index"],
        said["age"],
        bool(said["counted"]),
    )


def age_s(bench: Bench) -> float | None:
    moment = bench.node.current_at()
    return None if moment is None else bench.process.clock.monotonic() - moment


def leader(voters: int = 3) -> Bench:
    bench = Bench(voters)
    bench.lead()
    return bench


def test_a_leader_is_current_as_of_what_a_majority_gave_back_in_its_term() -> None:
    bench = leader(5)
    echo = now_us(bench)
    bench.settle(0.1)
    digest(bench, 2, echo)
    assert bench.node.current_at() is None
    digest(bench, 3, echo + 50_000)
    assert age_s(bench) == pytest.approx(0.1, abs=0.001)
    digest(bench, 4, echo + 60_000)
    assert age_s(bench) == pytest.approx(0.05, abs=0.001)


@pytest.mark.parametrize(
    "other", [{"counted": 0}, {"term": 0}], ids=["it doesn't count", "of an earlier term"]
)
def test_a_voice_that_does_not_count_makes_nobody_current(other: dict[str, int]) -> None:
    bench = leader()
    digest(bench, 2, now_us(bench), **other)
    assert bench.node.current_at() is None
    digest(bench, 2, now_us(bench))
    assert bench.node.current_at() is not None


@pytest.mark.parametrize("off_s", [-3600, 1])
def test_an_echo_of_another_life_or_of_the_future_is_none(off_s: int) -> None:
    bench = leader()
    digest(bench, 2, now_us(bench) + off_s * US)
    assert bench.node.current_at() is None


def test_an_echo_counts_once_however_often_it_comes() -> None:
    bench = leader()
    echo = now_us(bench)
    for _ in range(3):
        digest(bench, 2, echo)
        bench.settle(0.1)
    assert age_s(bench) == pytest.approx(0.3, abs=0.001)


def test_a_follower_is_as_old_as_its_leader_was_and_the_way_of_the_echo() -> None:
    bench = Bench()
    bench.append(2, 1, 0, 0, 0)
    echo = now_us(bench)
    bench.settle(0.2)
    digest(bench, 2, echo, age=300_000)
    assert age_s(bench) == pytest.approx(0.5, abs=0.001)


def test_a_follower_is_not_current_before_it_holds_what_its_leader_held() -> None:
    bench = Bench()
    bench.append(2, 1, 0, 0, 0)
    digest(bench, 2, now_us(bench), age=0, index=bench.node.guard.delivery.delivered_index + 1)
    assert bench.node.current_at() is None
    index = bench.node.context.view.last
    bench.append(2, 1, index + 1, index, bench.terms[-1], 1)
    bench.synced()
    assert bench.node.current_at() is not None


def test_every_digest_gives_back_the_clock_that_its_receiver_showed_last() -> None:
    bench = Bench()
    bench.call(bench.node.set_digest, b"mine")
    digest(bench, 2, -1)
    bench.settle(0.2)
    sent = dict(bench.taken(FrameKind.DIGEST))
    assert [sent[2][2], sent[3][2]] == [5 * US, -1]
    bench.unlink(2)
    bench.link(2)
    bench.settle(0.2)
    assert dict(bench.taken(FrameKind.DIGEST))[2][2] == -1


def test_a_voter_alone_is_current() -> None:
    bench = Bench(1)
    bench.settle(1.0)
    assert bench.role == "leader"
    assert age_s(bench) == 0.0


def strange_digest(bench: Bench, age: int, index: int) -> None:
    """Of a fresh directory under the node id of voter 3, in any voter's words."""
    fields = (b"d", now_us(bench), now_us(bench), index, age, True)
    bench.call(bench.node.on_frame, 3, encode(FrameKind.DIGEST, bench.term, FRESH, *fields))


def test_what_a_non_voter_says_of_ages_makes_nobody_current_and_holds_nothing_up() -> None:
    bench = Bench()
    bench.append(2, 1, 1, 1, 0)
    bench.unlink(3)
    bench.link(3, directory_id=FRESH)
    for _ in range(100):
        strange_digest(bench, age=0, index=0)
        strange_digest(bench, age=0, index=2**61)
    assert bench.node.current_at() is None
    heard = {event for event in bench.heard.events if event[0] == "digest"}
    assert heard == {("digest", 3, b"d", False)}
    digest(bench, 2, now_us(bench), age=0)
    assert bench.node.current_at() is not None


def test_what_a_false_leader_said_holds_nothing_up_in_the_next_term() -> None:
    bench = Bench()
    bench.append(2, 1, 1, 1, 0)
    for _ in range(100):
        digest(bench, 2, now_us(bench), age=0, index=2**61)
    assert bench.node.current_at() is None
    bench.append(3, 2, 1, 1, 0)
    digest(bench, 3, now_us(bench), age=0)
    assert bench.node.current_at() is not None


def test_a_voters_digest_of_a_later_term_does_not_hide_its_next_ones() -> None:
    bench = leader()
    digest(bench, 2, now_us(bench), term=bench.term + 5)
    digest(bench, 2, now_us(bench))
    assert age_s(bench) == pytest.approx(0.0, abs=0.001)
