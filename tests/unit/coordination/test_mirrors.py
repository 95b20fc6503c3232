"""Mirrors: watches that share one copy of a scope's state.

Rule: the store of these tests is a number that the test sets. A reading takes a second, so a test
can act in the midst of one.
"""

import asyncio
from collections.abc import Callable

import pytest

from coordination.backend import KeyScope, ValueChange, WatchBatch
from coordination.errors import AuthFailed, Unavailable
from coordination.mirrors import Mirror, MirrorReading, Mirrors, MirrorWatch
from coordination.types import Record, Revision
from tests.unit.coordination.virtual_loop import virtual

SCOPE = KeyScope("n")


class NumberView:
    """The state of a number is the number itself, which is its revision too."""

    def whole(self, state: int) -> WatchBatch:
        return WatchBatch("snapshot", Revision(state), changes=(changed(state),))

    def since(self, after: Revision, state: int) -> WatchBatch | None:
        return self.difference(after, state)

    def difference(self, old: int, new: int) -> WatchBatch | None:
        if old == new:
            return None
        return WatchBatch("changes", Revision(new), new > old + 1, (changed(new),))


def changed(number: int) -> ValueChange:
    at = Revision(number)
    return ValueChange("n", Record("n", b"", at, at, 1), at)


class NumberMirror(Mirror[int]):
    """Reads a `NumberStore`."""

    def __init__(self, store: "NumberStore") -> None:
        super().__init__(NumberView(), every_s=store.every_s, pause_s=0.5)
        self._store = store

    async def _read(self, *, anew: bool) -> MirrorReading[int]:
        self._store.readings.append(anew)
        number = self._store.number
        await asyncio.sleep(1)
        if self._store.errors:
            raise self._store.errors.pop(0)
        calm = None if self._store.every_s is None else Revision(number + 100)
        return MirrorReading(number, calm)

    async def _release(self) -> None:
        self._store.released += 1


class NumberStore:
    """A number, and its mirrors."""

    def __init__(self, *errors: Exception, every_s: float | None = None, progress: int = 1) -> None:
        self.number = 1
        self.every_s = every_s
        self.errors = list(errors)
        self.readings: list[bool] = []
        """Of each reading whether it was for a new watch."""
        self.released = 0
        self.mirrors = Mirrors(lambda _: NumberMirror(self), progress)

    def watch(self, after: Revision | None = None) -> MirrorWatch[int]:
        return self.mirrors.watch(SCOPE, after)

    def become(self, number: int) -> None:
        self.number = number
        for mirror in self.mirrors:
            mirror.wake()


def shown(batch: WatchBatch) -> tuple[str, int, bool]:
    return batch.kind, batch.revision, batch.coalesced


@virtual
async def test_watches_of_a_scope_share_readings_and_the_last_one_frees_the_store() -> None:
    store = NumberStore()
    watches = [store.watch() for _ in range(3)]
    assert {shown(await anext(each)) for each in watches} == {("snapshot", 1, False)}
    assert store.readings == [True]
    store.become(2)
    assert {shown(await anext(each)) for each in watches} == {("changes", 2, False)}
    assert store.readings == [True, False]
    for each in watches:
        assert store.mirrors
        assert store.released == 0
        await each.aclose()
        await each.aclose()
    assert store.released == 1
    assert not store.mirrors


@virtual
async def test_a_new_watch_waits_for_a_reading_that_began_after_it() -> None:
    store = NumberStore()
    first = store.watch()
    await asyncio.sleep(0.5)
    store.number = 2  # the reading under way has missed this
    second = store.watch()
    assert shown(await anext(first)) == ("snapshot", 1, False)
    assert shown(await anext(second)) == ("snapshot", 2, False)
    assert store.readings == [True, True]
    await store.mirrors.aclose()


@virtual
async def test_a_slow_watch_skips_states_and_says_so() -> None:
    store = NumberStore()
    watch = store.watch()
    await anext(watch)
    for number in (2, 3):
        store.become(number)
        await asyncio.sleep(2)
    assert shown(await anext(watch)) == ("changes", 3, True)
    await store.mirrors.aclose()


@virtual
async def test_a_watch_from_a_revision_reports_only_what_is_later() -> None:
    store = NumberStore()
    watch = store.watch(after=Revision(1))
    store.become(2)
    assert shown(await anext(watch)) == ("changes", 2, False)
    await store.mirrors.aclose()


@virtual
async def test_nothing_is_calm_while_a_reading_is_due_or_under_way() -> None:
    store = NumberStore()
    watch = store.watch()
    await anext(watch)
    (mirror,) = store.mirrors
    store.become(2)
    mirror.note_calm(Revision(2))  # due
    await asyncio.sleep(0.5)
    mirror.note_calm(Revision(2))  # under way
    assert mirror.pulses == 0
    assert shown(await anext(watch)) == ("changes", 2, False)
    mirror.note_calm(Revision(7))
    assert shown(await anext(watch)) == ("progress", 7, False)
    await store.mirrors.aclose()


@virtual
async def test_a_mirror_that_polls_reports_progress_at_every_nth_poll() -> None:
    store = NumberStore(every_s=1.0, progress=3)
    watch = store.watch()
    await anext(watch)
    assert shown(await anext(watch)) == ("progress", 101, False)
    assert len(store.readings) == 4
    assert shown(await anext(watch)) == ("progress", 101, False)
    assert len(store.readings) == 7
    await store.mirrors.aclose()


@pytest.mark.parametrize("error", [Unavailable("cut"), TimeoutError()])
@virtual
async def test_a_failed_reading_is_tried_again(error: Exception) -> None:
    store = NumberStore(error, error)
    watch = store.watch()
    assert shown(await anext(watch)) == ("snapshot", 1, False)
    assert len(store.readings) == 3
    await store.mirrors.aclose()


@pytest.mark.parametrize("make_error", [lambda: AuthFailed("no"), lambda: ZeroDivisionError("bug")])
@virtual
async def test_other_errors_end_the_watches_and_the_next_watch_begins_anew(
    make_error: Callable[[], Exception],
) -> None:
    error = make_error()
    store = NumberStore(error)
    ended = [store.watch(), store.watch()]
    for each in ended:
        with pytest.raises(type(error)):
            await anext(each)
    watch = store.watch()
    assert shown(await anext(watch)) == ("snapshot", 1, False)
    for each in ended:
        await each.aclose()
    assert list(store.mirrors), "the watch that lives keeps its mirror"
    await watch.aclose()
    assert store.released == 2


@virtual
async def test_closing_ends_a_watch_that_waits() -> None:
    store = NumberStore()
    watch = store.watch()
    waiting = asyncio.create_task(anext(watch, None))
    await asyncio.sleep(0.5)
    await watch.aclose()
    assert await waiting is None
