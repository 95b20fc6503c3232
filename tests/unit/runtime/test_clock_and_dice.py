"""The real clock, the random source, and defects in callbacks of the loop."""

import asyncio
import threading
import time
from collections.abc import Generator, Sequence

import pytest

from runtime.asyncio_clock import AsyncioClock, of_running_loop
from runtime.defects import watch_loop
from runtime.disk.paths import checked, checked_folder
from runtime.loop.slices import SLICE_S, run_in_slices
from runtime.randomness import Random, beside, from_system, seeded


async def test_callbacks_come_once_in_order_and_later() -> None:
    clock = AsyncioClock()
    seen: list[str] = []
    done = asyncio.Event()
    clock.call_later(0.02, done.set)
    clock.call_later(0.01, lambda: seen.append("later"))
    clock.call_later(0, lambda: seen.append("at once"))
    clock.call_later(-1, lambda: seen.append("at once, too"))
    clock.call_soon(lambda: seen.append("soon"))
    assert seen == []
    await done.wait()
    assert seen == ["at once", "at once, too", "soon", "later"]


async def test_a_cancelled_timer_is_not_called_and_may_be_cancelled_again() -> None:
    clock = AsyncioClock()
    seen: list[int] = []
    done = asyncio.Event()
    timers = [clock.call_later(0.001, lambda: seen.append(1)), clock.call_later(0, done.set)]
    timers[0].cancel()
    await done.wait()
    await asyncio.sleep(0.005)
    for timer in timers:
        timer.cancel()
    assert seen == []


async def test_time_goes_on() -> None:
    clock = AsyncioClock()
    before, wall = clock.monotonic(), clock.wall_ms()
    await asyncio.sleep(0.01)
    assert clock.monotonic() >= before + 0.009
    assert wall <= clock.wall_ms() <= time.time() * 1000 + 1


async def test_another_thread_is_called_back_on_the_loop() -> None:
    clock = AsyncioClock()
    done = asyncio.Event()
    seen: list[int] = []

    def called() -> None:
        seen.append(threading.get_ident())
        done.set()

    thread = threading.Thread(target=lambda: clock.call_soon_threadsafe(called))
    thread.start()
    await done.wait()
    thread.join()
    assert seen == [threading.get_ident()]


def test_equal_seeds_give_equal_throws_for_ever() -> None:
    # Written down: a seed that was reported must give the same run years later.
    assert seeded(7, "node", 3).getrandbits(64) == seeded(7, "node", 3).getrandbits(64)
    assert seeded(7, "node", 3).getrandbits(64) == 0x3D65DBFB91393BF4
    different = [seeded(7), seeded("7"), seeded(7, "x"), seeded(7, "y"), seeded("7", "x")]
    assert len({dice.getrandbits(64) for dice in different}) == 5


def test_dice_of_the_system_differ() -> None:
    assert from_system().getrandbits(64) != from_system().getrandbits(64)


def _word_of_state(drawn: int) -> int:
    """Return the word of a Mersenne Twister's state that one number of 32 bits shows."""
    word = drawn ^ drawn >> 18
    word ^= word << 15 & 0xEFC60000
    found = word
    for _ in range(5):
        found = word ^ (found << 7 & 0x9D2C5680)
    word = found
    for _ in range(3):
        found = word ^ found >> 11
    return found


def _next_number(drawn: Sequence[int]) -> int:
    """Return what a Mersenne Twister draws after these 624 numbers of 32 bits."""
    first, second, middle = (_word_of_state(drawn[place]) for place in (0, 1, 397))
    joined = first & 0x80000000 | second & 0x7FFFFFFF
    word = middle ^ joined >> 1 ^ (0x9908B0DF if joined & 1 else 0)
    word ^= word >> 11
    word ^= word << 7 & 0x9D2C5680
    word ^= word << 15 & 0xEFC60000
    return word ^ word >> 18


@pytest.mark.parametrize(("dice", "is_foreseen"), [(seeded(1), True), (from_system(), False)])
def test_nobody_foresees_the_dice_of_the_system(dice: Random, is_foreseen: bool) -> None:
    """Nonces of logins are such numbers, and whoever begins a login is told one."""
    drawn = [int.from_bytes(dice.randbytes(4), "little") for _ in range(625)]
    assert (_next_number(drawn[:624]) == drawn[624]) is is_foreseen


def test_dice_beside_others_take_no_draw_from_them() -> None:
    ours, same = seeded(1), seeded(1)
    copied = beside(ours)
    assert [copied.random() for _ in range(3)] == [same.random() for _ in range(3)]
    assert ours.random() == seeded(1).random()
    system = from_system()
    assert beside(system).getrandbits(64) != system.getrandbits(64)


async def test_a_defect_in_a_callback_is_reported_and_an_error_of_the_system_is_not() -> None:
    defects: list[BaseException] = []
    loop = asyncio.get_running_loop()
    watch_loop(loop, defects.append)
    logged: list[dict[str, object]] = []
    loop.default_exception_handler = logged.append

    def fail(error: Exception) -> None:
        raise error

    loop.call_soon(fail, KeyError("a defect"))
    loop.call_soon(fail, OSError("the system"))
    await asyncio.sleep(0.01)
    assert [type(defect) for defect in defects] == [KeyError]
    assert [type(context["exception"]) for context in logged] == [OSError]


@pytest.mark.parametrize(
    "name", ["a", "a/b.part", "journal/0001.wal", "..a", "a..", ".hidden", "ä"]
)
def test_plain_names_are_allowed(name: str) -> None:
    assert checked(name) == checked_folder(name) == name


def test_only_a_folder_may_have_the_empty_name() -> None:
    assert checked_folder("") == ""
    with pytest.raises(ValueError, match="not a plain relative path"):
        checked("")


def test_a_loop_has_one_clock_and_its_long_work_takes_turns() -> None:
    """Also if two roles of one process ask for it."""

    async def passes() -> list[int]:
        """Return how many steps the passes of the loop ran, of two pieces of work."""
        steps, found, ended = 0, [], 0

        def work() -> Generator[None, None, None]:
            nonlocal steps
            for _ in range(3):
                steps += 1
                time.sleep(SLICE_S)
                yield

        def done() -> None:
            nonlocal ended
            ended += 1

        assert of_running_loop() is of_running_loop()
        for _ in range(2):
            run_in_slices(of_running_loop(), work(), done)
        while ended < 2:
            before = steps
            await asyncio.sleep(0)
            found.append(steps - before)
        return found

    clocks = [asyncio.run(clock()) for clock in (_asked, _asked)]
    assert clocks[0] is not clocks[1]
    assert max(asyncio.run(passes())) == 1


async def _asked() -> AsyncioClock:
    return of_running_loop()
