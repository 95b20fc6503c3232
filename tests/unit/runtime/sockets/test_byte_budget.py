"""The shared budget of bytes: which caller gives way to which."""

from collections.abc import Callable

from runtime.loop.heap import TRIM_AFTER_BYTES, TRIM_DELAY_S, HeapTrimmer
from runtime.sockets.byte_budget import ByteBudget, ByteClaim


class Callers:
    def __init__(self, bytes_max: int) -> None:
        self.budget = ByteBudget(bytes_max)
        self.gave_way: list[str] = []

    def claim(self, name: str, caller: str) -> ByteClaim:
        return self.budget.claim(caller, lambda: self.gave_way.append(name))


def test_what_is_held_never_exceeds_the_budget() -> None:
    callers = Callers(100)
    one, two = callers.claim("1", "a"), callers.claim("2", "a")
    assert one.grow(60)
    assert not two.grow(41)
    assert two.grow(40)
    assert callers.budget.used == callers.budget.peak == 100
    one.close()
    one.close()
    assert callers.budget.used == 40


def test_the_caller_who_holds_most_gives_way_by_its_largest() -> None:
    callers = Callers(100)
    for name, size in (("small", 30), ("large", 50)):
        assert callers.claim(name, "greedy").grow(size)
    assert callers.claim("modest", "b").grow(40)
    assert callers.gave_way == ["large"]
    assert callers.budget.used == 70


def test_who_would_hold_most_is_refused() -> None:
    callers = Callers(100)
    assert callers.claim("1", "a").grow(60)
    late = callers.claim("2", "b")
    assert late.grow(40)
    assert not late.grow(30)
    assert callers.gave_way == []


def test_within_one_caller_the_large_gives_way_to_the_small() -> None:
    callers = Callers(100)
    assert callers.claim("half a body", "a").grow(100)
    assert callers.claim("a small one", "a").grow(10)
    assert callers.gave_way == ["half a body"]


def test_who_can_not_give_way_is_left_alone() -> None:
    budget = ByteBudget(100)
    assert budget.claim("a").grow(100)
    assert not budget.claim("b").grow(1)


def test_what_a_claim_gives_back_is_told() -> None:
    freed: list[int] = []
    claim = ByteBudget(100, freed.append).claim("a")
    claim.grow(60)
    claim.close()
    claim.close()
    assert freed == [60]


def test_the_heap_is_trimmed_once_a_while_after_much_was_freed() -> None:
    timers: list[float] = []
    calls: list[object] = []
    due: list[Callable[[], object]] = []
    trimmer = HeapTrimmer(
        lambda delay, call: (timers.append(delay), due.append(call)), lambda: calls.append(1)
    )
    trimmer.freed(TRIM_AFTER_BYTES - 1)
    assert timers == []
    trimmer.freed(1)
    trimmer.freed(TRIM_AFTER_BYTES)
    assert timers == [TRIM_DELAY_S]
    due[0]()
    assert calls == [1]
    trimmer.freed(1)
    assert len(timers) == 1
