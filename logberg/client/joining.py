"""Joins the changes that one client makes at the same time into one request (`POST /v1/changes`).

Rule: a change that is made while nothing else is goes at once and alone. Changes that are made in
the same pass of the loop go together, and so do those that come while two requests are under way.
Many are divided among the requests that may go, so that a controller is never idle between them.
Each change keeps its request id, its deadline and its outcome. A change that may be tried again
goes back to the front of the queue, and goes with the others that wait then.

A controller that doesn't know the route gets the changes one by one.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, NamedTuple

from logberg.client.client_errors import ClientError
from logberg.client.request_size import BODY_BYTES_MAX
from logberg.client.tries import Retry, UrlOrder
from logberg.client.waiting_change import WaitingChange
from metadata.errors import ErrorCode
from metadata.messages.joined_changes import CHANGES_MAX
from metadata.messages.wire import OBJECTS_MAX, VALUES_MAX
from runtime.randomness import Random

IN_FLIGHT_MAX: Final = 2
"""While requests are under way, the changes for the next one gather. So a controller decides the
changes of one request while those of another one become durable."""
FEW: Final = 16
"""So few changes that wait go in one request. More are divided among the requests that may go."""
ALONE_IN_FLIGHT_MAX: Final = 64
"""At a controller that doesn't know the route."""
SLOW_S: Final = 0.25
"""A request that is not answered after this time holds no others back."""
_TRY_S: Final = 5.0
_OWN_VALUES: Final = 6
"""The most fields of a change beside its body."""


class TryResult(NamedTuple):
    """What one change of a request came to; `retry` is set if it may be tried again."""

    change: WaitingChange
    found: Any = None
    error: ClientError | None = None
    retry: Retry | None = None


class UnknownRouteError(Exception):
    """The controller doesn't know the route. Nothing was changed."""


Send = Callable[[str, list[WaitingChange], float], Awaitable[list[TryResult]]]
"""Sends changes to a URL, one alone and several joined, within so many seconds. Raises Retry for
all of them, ClientError for all of them, UnknownRouteError."""
ErrorOf = Callable[[ClientError, str], ClientError]
"""Returns the error for the caller, from the last one and the request id: the outcome may be
unknown."""


class Joining:
    """The changes of one client that wait, and its requests under way."""

    def __init__(
        self, urls: list[str], random: Random, send: Send, refused: ErrorOf, given_up: ErrorOf
    ) -> None:
        """`urls`: those of the client. `refused`: no repeat helps; `given_up`: the time is over."""
        self._urls = urls
        self._random = random
        self._send = send
        self._error_of_refusal = refused
        self._given_up = given_up
        self._order = UrlOrder(urls, random)
        self._waiting: deque[WaitingChange] = deque()
        self._pausing: dict[WaitingChange, asyncio.TimerHandle] = {}
        """Changes for which the controller had no room; each goes again after its pause."""
        self._in_flight = 0
        self._tries: set[asyncio.Task[None]] = set()
        self._wake_up: asyncio.TimerHandle | asyncio.Handle | None = None
        self._expiry: asyncio.TimerHandle | None = None
        self._not_before = 0.0
        self._closed = False
        self._one_by_one: set[str] = set()
        """Controllers that don't know the route."""

    async def make(self, change: WaitingChange) -> Any:
        """Make a change, and return its reply. Raises ClientError."""
        if self._closed:
            raise RuntimeError("use the client in `async with`")
        self._waiting.append(change)
        self._wake()
        return await change.outcome

    async def close(self) -> None:
        """Give up what waits and what is under way."""
        self._closed = True
        for handle in (self._wake_up, self._expiry):
            if handle is not None:
                handle.cancel()
        tries = list(self._tries)
        for each in tries:
            each.cancel()
        await asyncio.gather(*tries, return_exceptions=True)
        closed = ClientError("NO_ANSWER", "the client was closed")
        for pause in self._pausing.values():
            pause.cancel()
        self._give_up((*self._waiting, *self._pausing), closed)
        self._waiting.clear()
        self._pausing.clear()

    # -- the queue -------------------------------------------------------------------------

    def _wake(self) -> None:
        """See to it that what waits is sent in the next pass of the loop, or after the pause."""
        if self._closed or self._wake_up is not None or not self._waiting or not self._has_slot():
            return
        loop = asyncio.get_running_loop()
        if self._not_before > loop.time():
            self._wake_up = loop.call_at(self._not_before, self._send_next)
        else:
            self._wake_up = loop.call_soon(self._send_next)
        if self._expiry is None:
            self._expiry = loop.call_at(self._waiting[0].until, self._expire)

    def _has_slot(self) -> bool:
        most = ALONE_IN_FLIGHT_MAX if self._order.url in self._one_by_one else IN_FLIGHT_MAX
        return self._in_flight < most

    def _send_next(self) -> None:
        self._wake_up = None
        loop = asyncio.get_running_loop()
        while self._waiting and self._has_slot():
            url = self._order.url
            if url is None:
                # No URL is worth another try. A later change tries all of them again.
                why, self._order = self._order.why, UrlOrder(self._urls, self._random)
                self._give_up(self._waiting, why)
                self._waiting.clear()
                return
            batch = self._take(1 if url in self._one_by_one else self._share())
            if not batch:
                return
            self._in_flight += 1
            task = loop.create_task(self._try(url, batch))
            self._tries.add(task)
            task.add_done_callback(self._tries.discard)

    def _share(self) -> int:
        """Return how many of the waiting changes the next request may have."""
        free = IN_FLIGHT_MAX - self._in_flight
        return min(max(-(-len(self._waiting) // free), FEW), CHANGES_MAX)

    def _take(self, most: int) -> list[WaitingChange]:
        """Take the first changes that fit into one request."""
        taken: list[WaitingChange] = []
        values = objects = length = 0
        waiting = self._waiting
        while waiting and len(taken) < most:
            change = waiting[0]
            if change.outcome.done():
                waiting.popleft()  # Its caller was cancelled.
                continue
            body = change.body or b""
            values += body.count(b",") + _OWN_VALUES
            objects += body.count(b"{") + 1
            length += len(body) + len(change.target) + len(change.headers.reason) * 6 + 200
            most = min(most, change.joined_max)
            too_large = values > VALUES_MAX or objects >= OBJECTS_MAX or length > BODY_BYTES_MAX
            if taken and (too_large or len(taken) >= most):
                break
            taken.append(waiting.popleft())
        return taken

    def _expire(self) -> None:
        """Give up the changes whose deadline has passed while they waited."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        self._expiry = None
        late = [change for change in self._waiting if change.until <= now]
        if late:
            self._waiting = deque(change for change in self._waiting if change.until > now)
            self._give_up(late, self._order.why)
        if self._waiting:
            earliest = min(change.until for change in self._waiting)
            self._expiry = loop.call_at(earliest, self._expire)

    def _give_up(self, changes: Iterable[WaitingChange], why: ClientError) -> None:
        for change in changes:
            if not change.outcome.done():
                change.outcome.set_exception(self._given_up(why, change.headers.request_id))

    # -- one request -----------------------------------------------------------------------

    async def _try(self, url: str, batch: list[WaitingChange]) -> None:
        loop = asyncio.get_running_loop()
        slot = _Slot(self._free)
        slow = loop.call_later(SLOW_S, slot.free)
        try:
            left = min(change.until for change in batch) - loop.time()
            results = await self._send(url, batch, max(min(left, _TRY_S), 0.001))
        except Retry as retry:
            self._again(url, batch, retry)
        except UnknownRouteError:
            self._one_by_one.add(url)
            self._waiting.extendleft(reversed(batch))
        except ClientError as error:
            self._refused(batch, error)
        except BaseException:
            self._give_up(batch, ClientError("NO_ANSWER", "the client was closed"))
            raise
        else:
            self._settle(url, results)
        finally:
            slow.cancel()
            slot.free()
            self._wake()

    def _free(self) -> None:
        self._in_flight -= 1
        self._wake()

    def _again(self, url: str, batch: Iterable[WaitingChange], retry: Retry) -> None:
        """Let changes be tried again, at the next URL or after a pause."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        if not retry.error.status:
            # The controller is gone, and may return as another build.
            self._one_by_one.discard(url)
        if url == self._order.url:
            # Otherwise another request has failed there too, and the next URL is chosen already.
            self._not_before = max(self._not_before, now + self._order.after(retry))
        still = [change for change in batch if change.until > now]
        self._give_up((change for change in batch if change.until <= now), self._order.why)
        self._waiting.extendleft(reversed(still))

    def _refused(self, batch: list[WaitingChange], error: ClientError) -> None:
        """A refusal of the whole request, which no repeat helps."""
        if error.code == ErrorCode.BODY_TOO_LARGE and len(batch) > 1:
            for change in batch:
                change.joined_max = (len(batch) + 1) // 2
            self._waiting.extendleft(reversed(batch))
            return
        for change in batch:
            if not change.outcome.done():
                change.outcome.set_exception(
                    self._error_of_refusal(error, change.headers.request_id)
                )

    def _settle(self, url: str, results: list[TryResult]) -> None:
        """Give each caller its outcome; let the others be tried again."""
        elsewhere: list[WaitingChange] = []
        moved: Retry | None = None
        for change, found, error, retry in results:
            outcome = change.outcome
            if outcome.done():
                continue
            if retry is None:
                if error is None:
                    outcome.set_result(found)
                else:
                    outcome.set_exception(error)
            elif retry.wait_s > 0:
                self._later(change, retry)
            else:
                elsewhere.append(change)
                moved = moved or retry
        if moved is not None:
            self._again(url, elsewhere, moved)
        else:
            self._order.settled()

    def _later(self, change: WaitingChange, retry: Retry) -> None:
        """The controller has no room for this change now. It takes the others."""
        loop = asyncio.get_running_loop()
        left = change.until - loop.time()
        pause_s = retry.wait_s * (1 + 0.5 * self._random.random())

        def again() -> None:
            del self._pausing[change]
            if change.until <= loop.time():
                self._give_up((change,), retry.error)
            else:
                self._waiting.append(change)
                self._wake()

        self._pausing[change] = loop.call_later(min(pause_s, max(left, 0.0)), again)


class _Slot:
    """The place of a request among those under way. It is freed once."""

    __slots__ = ("_on_free",)

    def __init__(self, on_free: Callable[[], None]) -> None:
        self._on_free: Callable[[], None] | None = on_free

    def free(self) -> None:
        """Let another request take the place."""
        on_free, self._on_free = self._on_free, None
        if on_free is not None:
            on_free()
