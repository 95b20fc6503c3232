"""What tooz's own suite doesn't ask of our driver. The suite itself runs in tests/coordination."""

import importlib.metadata
import time
from collections.abc import Callable, Iterator

import pytest
from tooz import ToozError, coordination

from coordination.tooz_driver.driver import LogbergDriver
from coordination.tooz_driver.translating import SCHEMES, as_text, from_text
from runtime.randomness import from_system

MakeDriver = Callable[..., LogbergDriver]


@pytest.fixture
def make() -> Iterator[MakeDriver]:
    """Starts coordinators on one store of this test's own; they are stopped at its end."""
    store = f"tooz-{from_system().getrandbits(48):x}"
    made: list[LogbergDriver] = []

    def start(member_id: bytes, options: str = "") -> LogbergDriver:
        url = f"logberg+memory://{store}{options}"
        driver = coordination.get_coordinator(url, member_id)
        assert isinstance(driver, LogbergDriver)
        driver.start()
        made.append(driver)
        return driver

    yield start
    for driver in made:
        if driver.is_started:
            driver.stop()


def test_each_scheme_is_an_entry_point() -> None:
    points = importlib.metadata.entry_points(group="tooz.backends")
    ours = {point.name for point in points if point.name.startswith("logberg+")}
    assert ours == SCHEMES.keys()


@pytest.mark.parametrize("id_", [b"plain", b"a/b", b"\xff\x00", "наши".encode(), b"%41", b" "])
def test_an_id_of_any_bytes_comes_back(id_: bytes) -> None:
    assert from_text(as_text(id_)) == id_
    assert "/" not in as_text(id_)


def test_who_does_not_say_that_it_lives_loses_all_that_it_had(make: MakeDriver) -> None:
    silent, watcher = make(b"silent", "?timeout=0.5"), make(b"watcher")
    silent.create_group(b"g").get()
    silent.join_group(b"g").get()
    assert silent.get_lock(b"l").acquire()
    other = watcher.get_lock(b"l")
    assert not other.acquire(blocking=False)
    assert other.acquire(blocking=10)
    assert watcher.get_members(b"g").get() == set()
    with pytest.raises(ToozError, match="start it again"):
        silent.heartbeat()


def test_who_says_that_it_lives_stays(make: MakeDriver) -> None:
    driver = make(b"one", "?timeout=0.6")
    driver.create_group(b"g").get()
    driver.join_group(b"g").get()
    for _ in range(6):
        time.sleep(driver.heartbeat() / 2)
    assert driver.get_members(b"g").get() == {b"one"}


def test_who_was_made_to_leave_may_join_again(make: MakeDriver) -> None:
    first, second = make(b"same"), make(b"same")
    first.create_group(b"g").get()
    first.join_group(b"g").get()
    second.leave_group(b"g").get()
    assert first.get_members(b"g").get() == set()
    first.join_group(b"g", {"again": True}).get()
    assert second.get_members_with_capabilities(b"g").get() == {b"same": {"again": True}}
    first.leave_group(b"g").get()
    first.delete_group(b"g").get()
    assert first.get_groups().get() == []


def test_tokens_of_a_lock_grow_and_the_store_says_who_owns_it(make: MakeDriver) -> None:
    lock, other = make(b"a").get_lock(b"l"), make(b"b").get_lock(b"l")
    assert lock.acquire()
    token = lock.token
    assert lock.is_still_owner()
    assert other.break_()
    assert other.acquire(blocking=1)
    assert not lock.is_still_owner()
    assert token is not None
    assert other.token is not None
    assert other.token > token


def test_an_unknown_option_and_a_timeout_that_is_no_number_are_errors(make: MakeDriver) -> None:
    with pytest.raises(ToozError, match="no option 'colour'"):
        make(b"a", "?colour=red")
    with pytest.raises(ToozError, match="no number of seconds"):
        make(b"a", "?timeout=long")


@pytest.mark.parametrize(
    "call",
    [
        lambda driver: driver.heartbeat(),
        lambda driver: driver.create_group(b"g"),
        lambda driver: driver.join_group(b"g"),
        lambda driver: driver.get_members(b"g"),
        lambda driver: driver.get_leader(b"g"),
        lambda driver: driver.stand_down_group_leader(b"g"),
        lambda driver: driver.get_lock(b"l").acquire(),
    ],
)
def test_before_start_and_after_stop_each_call_says_so(
    make: MakeDriver, call: Callable[[LogbergDriver], object]
) -> None:
    stopped = make(b"stopped")
    stopped.stop()
    new = coordination.get_coordinator("logberg+memory://never-started", b"new")
    assert isinstance(new, LogbergDriver)
    for driver in (stopped, new):
        with pytest.raises(ToozError, match="was not started"):
            call(driver)


def test_a_lock_works_on_after_a_stop_and_a_start(make: MakeDriver) -> None:
    driver, other = make(b"a"), make(b"b")
    lock = driver.get_lock(b"l")
    assert lock.acquire()
    driver.stop()
    assert other.get_lock(b"l").acquire(blocking=1)
    driver.start()
    assert not lock.is_still_owner()
    assert not lock.acquire(blocking=False)
