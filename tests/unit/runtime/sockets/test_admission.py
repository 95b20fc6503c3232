"""Which connection is closed for which, when there are too many."""

from collections.abc import Callable

from runtime.sockets.admission import Admission, ConnectionPlace, Rank, Slots
from runtime.sockets.byte_budget import ByteBudget
from runtime.sockets.descriptors import RESERVE, divide


class Hall:
    """An admission with a clock in the hand, and what became of each connection."""

    def __init__(
        self, total: int = 3, per_address: int = 3, slots: int = 2, budget_bytes: int = 1000
    ) -> None:
        self.now = 0.0
        self.timers: list[tuple[float, Callable[[], None]]] = []
        self.log: list[str] = []
        self.budget = ByteBudget(budget_bytes)
        self.admission = Admission(
            total,
            per_address,
            slots=Slots(slots, 10, self.budget, 1.0),
            now=lambda: self.now,
            call_later=lambda delay, call: self.timers.append((self.now + delay, call)),
        )

    def come(self, name: str, address: str = "a") -> ConnectionPlace | None:
        place = ConnectionPlace(address, lambda: self.log.append(f"end {name}"))
        return place if self.admission.enter(place) else None

    def send(self, name: str, address: str = "a") -> ConnectionPlace:
        place = self.come(name, address)
        assert place is not None
        self.admission.when_room(place, lambda: self.log.append(f"begin {name}"))
        return place

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        due = [timer for timer in self.timers if timer[0] <= self.now]
        self.timers = [timer for timer in self.timers if timer[0] > self.now]
        for _, call in due:
            call()


def test_the_oldest_silent_connection_ends_for_the_newest() -> None:
    hall = Hall()
    for name in "1234":
        assert hall.come(name) is not None
    assert hall.log == ["end 1"]
    assert (hall.admission.inside, hall.admission.ended, hall.admission.turned_away) == (3, 1, 0)


def test_the_lowest_rank_ends_first_and_a_busy_one_never() -> None:
    hall = Hall(total=4, per_address=10)
    ranks = {"busy": Rank.BUSY, "idle": Rank.IDLE, "unknown": Rank.UNKNOWN, "silent": Rank.SILENT}
    for name, rank in ranks.items():
        place = hall.come(name)
        assert place is not None
        hall.admission.move(place, rank)
    for n in range(3):
        newcomer = hall.come(str(n))
        assert newcomer is not None
        hall.admission.move(newcomer, Rank.BUSY)
    assert hall.log == ["end silent", "end unknown", "end idle"]
    assert hall.come("one too many") is None
    assert hall.admission.turned_away == 1


def test_an_address_that_has_all_it_may_ends_its_own() -> None:
    hall = Hall(total=10, per_address=2)
    hall.come("old", "b")
    for name in "123":
        assert hall.come(name, "a") is not None
    assert hall.log == ["end 1"]


def test_who_leaves_twice_leaves_once() -> None:
    hall = Hall()
    place = hall.come("1")
    assert place is not None
    hall.admission.leave(place)
    hall.admission.leave(place)
    assert hall.admission.inside == 0
    assert not hall.admission.make_room()


def test_who_waits_for_a_slot_begins_when_one_is_free_and_the_newest_first() -> None:
    hall = Hall(total=10, per_address=10)
    first = hall.send("1")
    for name in "234":
        hall.send(name)
    assert hall.log == ["begin 1", "begin 2"]
    hall.admission.leave(first)
    assert hall.log == ["begin 1", "begin 2", "begin 4"]
    assert hall.budget.used == 20


def test_addresses_get_slots_in_turn() -> None:
    hall = Hall(total=10, per_address=10, slots=1)
    holder = hall.send("0")
    for name in "123":
        hall.send(name, "flood")
    hall.send("other", "b")
    hall.admission.leave(holder)
    assert hall.log == ["begin 0", "begin 3"]
    hall.pass_time(1.0)
    assert hall.log == ["begin 0", "begin 3", "end 3", "begin other"]


def test_who_becomes_known_gives_its_slot_to_the_next() -> None:
    hall = Hall(slots=1)
    place = hall.send("1")
    hall.send("2")
    hall.admission.move(place, Rank.BUSY)
    assert hall.log == ["begin 1", "begin 2"]


def test_a_slot_is_lost_after_its_grace_only_while_others_wait() -> None:
    hall = Hall(slots=1)
    hall.send("1")
    hall.pass_time(100)
    assert hall.log == ["begin 1"]
    hall.send("2")
    hall.pass_time(1.0)
    assert hall.log == ["begin 1", "end 1", "begin 2"]
    hall.send("3")
    hall.pass_time(0.5)
    assert hall.log[3:] == [], "the grace of 2 is not over"
    hall.pass_time(1.0)
    assert hall.log[3:] == ["end 2", "begin 3"]


def test_a_slot_is_not_lost_while_its_bytes_lie_unread_here() -> None:
    hall = Hall(slots=1)
    hall.send("1").is_unread = lambda: True
    hall.send("2")
    hall.pass_time(1.5)
    assert hall.log == ["begin 1"]
    hall.pass_time(4.0)
    assert hall.log == ["begin 1", "end 1", "begin 2"], "but not for ever"


def test_without_budget_nobody_gets_a_slot_until_bytes_come_back() -> None:
    hall = Hall(budget_bytes=15)
    body = hall.budget.claim("somebody")
    assert body.grow(10)
    hall.send("1")
    assert hall.log == []
    body.close()
    hall.pass_time(1.0)
    assert hall.log == ["begin 1"]


def test_descriptors_are_divided_and_the_reserve_stays() -> None:
    for total in (64, 256, 1024, 4096, 1_000_000):
        parts = divide(total)
        assert parts.http + 2 * parts.quorum_strangers + parts.reserve <= total
        assert parts.reserve == min(RESERVE, total // 2)
        assert parts.http > parts.quorum_strangers > 0
    assert divide(-1).total == 1_000_000, "unlimited"
