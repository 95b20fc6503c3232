"""Asks the controllers: follows the leader, tries the next one, repeats a change safely.

Rule: a change carries one request id through all its tries, and the controllers remember what came
of an id, also after a failover. So a repeat never acts twice. When the time is over and a try may
have arrived, the error is OutcomeUnknown; when none can have, it is Unavailable.

A try ends long before the request's time does, so that a controller that hangs costs one try.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final, TypeVar

import msgspec

from coordination.backends.quorum.joining import POST, SHORT_BYTES, JoinedRequests, ShortChange
from coordination.backends.quorum.refusals import error_of
from coordination.backends.quorum.request_ids import RequestId, RequestIds
from coordination.errors import (
    AuthFailed,
    CoordinationError,
    OutcomeUnknown,
    SessionLost,
    Unavailable,
)
from coordination.scopes import sleep
from metadata.messages.coordination import RenewSessionRequest
from metadata.messages.errors import ErrorReply
from metadata.messages.message import RequestMessage
from metadata.messages.versions import Agreed
from metadata.messages.wire import JSON, MSGPACK, encode
from runtime.clock import Clock
from runtime.http.origins import may_follow
from runtime.http.requests import Reply, Request, Requester, Unreachable
from runtime.randomness import Random

T = TypeVar("T")
REQUEST_ID: Final = "x-logberg-request-id"
PAUSE_S: Final = 0.05
SHORTEST_TRY_S: Final = 0.5
LEAST_TRY_S: Final = 0.05
"""A change that is sent with less time left than this only ends in doubt."""
URLS_MAX: Final = 64
AT_ONCE: Final = 16
"""How many requests of one client are under way at most; the others wait. Each one under way has a
connection of its own, and a crowd of TLS handshakes would delay all of them."""
TRANSIENT: Final = frozenset({408, 421, 429, 502, 503, 504})
"""With these statuses the same request may succeed elsewhere or later."""
_TOO_MANY: Final = 429
_MAY_HAVE_ACTED: Final = frozenset(
    {"REQUEST_TIMED_OUT", "UNKNOWN_SERVER_ERROR", "HTTP_500", "HTTP_502", "HTTP_504"}
)
_WRONG_TIME: Final = frozenset({"REQUEST_FROM_FUTURE", "REQUEST_EXPIRED"})


class UnreadableReplyError(Exception):
    """A server answered, and its answer isn't the message that was asked for."""


class ControllerRequests:
    """The controllers of one cluster, and which of them was the leader last."""

    def __init__(
        self,
        urls: Sequence[str],
        requester: Requester,
        clock: Clock,
        dice: Random,
        timeout_s: float,
        *,
        only_named: bool = False,
        shows_certificate: bool = False,
    ) -> None:
        """`timeout_s`: how long one request may take with all its tries.

        `only_named`: follow no leader to a URL that isn't among `urls`. `shows_certificate`: of our
        own, which the controllers may refuse.
        """
        self._only_named = only_named
        self._unproven = shows_certificate
        self.timeout_s = timeout_s
        self.clock = clock
        self._urls = list(urls)
        self._at = 0
        self._requester = requester
        self._dice = dice
        self._agreed = Agreed()
        self.request_ids = RequestIds(clock, dice)
        self._try_s = max(SHORTEST_TRY_S, timeout_s / 3)
        self._room = asyncio.Semaphore(AT_ONCE)
        self._joined = JoinedRequests(self._post)
        self._on_move: list[Callable[[], None]] = []

    @property
    def url(self) -> str:
        """The controller to ask next: the leader, as far as known."""
        return self._urls[self._at]

    async def ask(
        self,
        method: str,
        path: str,
        reply: type[T],
        message: RequestMessage | None = None,
        *,
        query: Mapping[str, str] | None = None,
        request_id: RequestId | None = None,
        steps: tuple[int, int] = (0, 0),
    ) -> T:
        """Ask until somebody answers. `request_id`: of a change; without it a repeat is harmless.

        `steps`: how many checks and fences a commit has, to count its steps.
        """
        until_s = self.clock.monotonic() + self.timeout_s
        in_doubt = False
        why = "no controller was asked"
        refusals = 0
        untrusted: set[str] = set()
        while (left_s := until_s - self.clock.monotonic()) > LEAST_TRY_S:
            url, answer = await self._next(method, path, message, query or {}, request_id, left_s)
            if isinstance(answer, Unreachable):
                why = f"{url}: {answer.reason}"
                refused = answer.untrusted or (answer.hung_up and self._unproven)
                untrusted = untrusted | {url} if refused else untrusted - {url}
                if untrusted.issuperset(self._urls) and not in_doubt:
                    raise AuthFailed(why)
                in_doubt = in_doubt or not (answer.refused or refused)
                self.try_next(url)
                await self._pause(PAUSE_S, until_s)
                continue
            if answer.status < 300:
                try:
                    return read_reply(answer, reply)
                except UnreadableReplyError as unreadable:
                    why, in_doubt = f"{url}: {unreadable}", True
                    self.try_next(url)
                    await self._pause(PAUSE_S, until_s)
                    continue
            error = read_error(answer, url)
            corrected = None if in_doubt else self._corrected(request_id, error)
            if corrected is not None:
                request_id = corrected
                continue
            in_doubt = in_doubt or error.code in _MAY_HAVE_ACTED
            if answer.status not in TRANSIENT:
                refusal = error_of(error, answer.status, *steps)
                raise self._refused(refusal, request_id, in_doubt=in_doubt)
            why = f"{url}: {error.message}"
            refusals += 1
            await self._pause(self._after(url, error, answer.status, refusals), until_s)
        if in_doubt and request_id is not None:
            raise OutcomeUnknown(f"nobody said what came of the request; last: {why}")
        raise Unavailable(f"no controller answered in {self.timeout_s:g} s; last: {why}")

    async def _next(
        self,
        method: str,
        path: str,
        message: RequestMessage | None,
        query: Mapping[str, str],
        request_id: RequestId | None,
        left_s: float,
    ) -> tuple[str, Reply | Unreachable]:
        """Ask one controller once, when it is this request's turn; also return which one."""
        until_s = self.clock.monotonic() + left_s
        text = None if request_id is None else request_id.text
        if text is not None and message is not None and method == POST:
            body = encode(message, MSGPACK)
            if len(body) <= SHORT_BYTES:
                url, limit_s = self.url, min(self._try_s, left_s)
                change = ShortChange(path, body, text)
                return url, await self._joined.make(url, change, limit_s)
        try:
            async with self._turn(message, left_s):
                limit_s = min(self._try_s, max(0.0, until_s - self.clock.monotonic()))
                url = self.url
                return url, await self.once(url, method, path, message, query, text, limit_s)
        except TimeoutError:
            return "", Unreachable("too many requests of this client are under way", refused=True)

    @asynccontextmanager
    async def _turn(self, message: RequestMessage | None, limit_s: float) -> AsyncIterator[None]:
        """Wait until few enough requests are under way. A heartbeat never waits.

        Raises TimeoutError.
        """
        if isinstance(message, RenewSessionRequest):
            yield
            return
        async with asyncio.timeout(limit_s):
            await self._room.acquire()
        try:
            yield
        finally:
            self._room.release()

    async def _pause(self, pause_s: float, until_s: float) -> None:
        await sleep(self.clock, max(0.0, min(pause_s, until_s - self.clock.monotonic())))

    def _corrected(self, request_id: RequestId | None, error: ErrorReply) -> RequestId | None:
        """Return another id for a change that was refused only because our clock is wrong."""
        if request_id is None or not request_id.fresh or error.code not in _WRONG_TIME:
            return None
        if error.server_time_ms is None:
            return None
        return self.request_ids.again(request_id, error.server_time_ms)

    async def once(
        self,
        url: str,
        method: str,
        path: str,
        message: RequestMessage | None,
        query: Mapping[str, str],
        request_id: str | None,
        deadline_s: float,
    ) -> Reply | Unreachable:
        """Ask one controller once; cancelling abandons the request."""
        body = b"" if message is None else encode(message, MSGPACK)
        return await self._exchange(url, method, path, body, query, request_id, deadline_s)

    async def _post(
        self, url: str, path: str, body: bytes, request_id: str | None, deadline_s: float
    ) -> Reply | Unreachable:
        return await self._exchange(url, POST, path, body, {}, request_id, deadline_s)

    async def _exchange(
        self,
        url: str,
        method: str,
        path: str,
        body: bytes,
        query: Mapping[str, str],
        request_id: str | None,
        deadline_s: float,
    ) -> Reply | Unreachable:
        answered: asyncio.Future[Reply | Unreachable] = asyncio.get_running_loop().create_future()
        headers = {"accept": MSGPACK, **self._agreed.headers(url)}
        if body:
            headers["content-type"] = MSGPACK
        if request_id is not None:
            headers[REQUEST_ID] = request_id
        request = Request(method, path, body, query, self._agreed.named(url, headers))

        def on_reply(answer: Reply | Unreachable) -> None:
            if not answered.done():
                answered.set_result(answer)

        pending = self._requester.request(url, request, on_reply, deadline_s)
        try:
            answer = await answered
        except asyncio.CancelledError:
            pending.abandon()
            raise
        if isinstance(answer, Reply):
            self._unproven = False
            self._agreed.heard(url, answer.headers)
        else:
            self._agreed.forget(url)
        return answer

    def try_next(self, asked: str) -> None:
        """A controller doesn't answer: ask the next one, unless that was done already."""
        if self.url == asked:
            self._move((self._at + 1) % len(self._urls))

    def follow(self, asked: str, leader: str | None) -> bool:
        """Ask the leader that an answer named. False: it named none that may be asked."""
        if leader is None or leader == asked or not may_follow(asked, leader):
            return False
        if leader not in self._urls:
            if self._only_named or len(self._urls) >= URLS_MAX:
                return False
            self._urls.append(leader)
        self._move(self._urls.index(leader))
        return True

    def on_move(self, callback: Callable[[], None]) -> None:
        """Call back whenever `url` has become another one."""
        self._on_move.append(callback)

    def _move(self, at: int) -> None:
        if at != self._at:
            self._at = at
            for callback in self._on_move:
                callback()

    def _after(self, url: str, error: ErrorReply, status: int, refusals: int) -> float:
        """Choose whom to ask next; returns the pause before it, in seconds.

        `refusals`: how many transient ones this request has met. A controller that is cut off
        from the others says `NO_QUORUM` and to come back later. So all are asked before the pause.
        """
        if self.follow(url, error.leader_url):
            return 0.0 if refusals % 3 else PAUSE_S
        if status != _TOO_MANY:
            self.try_next(url)
            if refusals % len(self._urls):
                return PAUSE_S
        if error.retry_after_ms:
            return error.retry_after_ms / 1000 * (1 + 0.5 * self._dice.random())
        return PAUSE_S

    def _refused(
        self, error: CoordinationError, request_id: RequestId | None, *, in_doubt: bool
    ) -> CoordinationError:
        """A refusal says nothing about an earlier try that may have arrived, or may yet."""
        if not in_doubt or request_id is None:
            return error
        if isinstance(error, SessionLost):
            error.outcome = "unknown"
            return error
        unknown = OutcomeUnknown(f"a try may have made the change; the last answer: {error}")
        unknown.__cause__ = error
        return unknown


def read_reply(answer: Reply, wanted: type[T]) -> T:
    """Return the message of an answer. Raises UnreadableReplyError."""
    try:
        if answer.headers.get("content-type", MSGPACK).startswith(JSON):
            return msgspec.json.decode(answer.body, type=wanted)
        return msgspec.msgpack.decode(answer.body, type=wanted)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UnreadableReplyError(f"the answer is no {wanted.__name__}: {error}") from error


def read_error(answer: Reply, url: str) -> ErrorReply:
    """Return the body of a refusal, or one made from its status."""
    try:
        if answer.headers.get("content-type", MSGPACK).startswith(JSON):
            return msgspec.json.decode(answer.body, type=ErrorReply)
        return msgspec.msgpack.decode(answer.body, type=ErrorReply)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ErrorReply(f"HTTP_{answer.status}", f"{url} answered {answer.status}")
