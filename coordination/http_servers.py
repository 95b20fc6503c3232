"""Asks a store's servers over HTTP, one after the other, until one answers in time.

Rule: only requests that may be made twice come here, because a request whose reply is lost goes to
the next server. Reads may be repeated anyhow. A change needs a condition that no longer holds once
the change was made.

A backend says what an answer means: it raises `NotDoneError` or `PerhapsDoneError` for one that
another server may better, and any other error to end the request.
"""

import asyncio
import io
import ssl as tls
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final, NamedTuple, TypeVar

import aiohttp

from coordination.errors import AuthFailed, OutcomeUnknown, Unavailable
from runtime.clock import Clock

CONNECT_S: Final = 0.5
_FIRST_TRY_S: Final = 1.0
"""How long each of several servers may take in the first round; twice as long in each further."""
_MOST_REQUESTS: Final = 64
"""How many requests are under way at once. Requests that wait for changes don't count."""
_PAUSES_S: Final = (0.0, 0.02, 0.05, 0.1, 0.2)
"""Between two rounds over all servers. The last one repeats."""

T = TypeVar("T")


class NotDoneError(Exception):
    """This server didn't do it. Another may."""

    def __init__(self, message: str, *, untrusted: bool = False) -> None:
        """`untrusted`: its certificate isn't accepted."""
        super().__init__(message)
        self.untrusted = untrusted


class PerhapsDoneError(Exception):
    """This server didn't say whether it did it."""


class HttpReply(NamedTuple):
    """A reply's content."""

    status: int
    headers: Mapping[str, str]
    content: bytes


class HttpServers:
    """The servers of one store, and the connections to them."""

    def __init__(
        self,
        store: str,
        urls: tuple[str, ...],
        *,
        timeout_s: float,
        clock: Clock,
        ssl: tls.SSLContext | None,
    ) -> None:
        """`store` is its name, for messages; `timeout_s` is for a request over all servers."""
        self._store = store
        self._urls = urls
        self._timeout_s = timeout_s
        self._clock = clock
        self._ssl = ssl
        self._preferred = 0
        self._http: aiohttp.ClientSession | None = None
        self._turns = asyncio.Semaphore(_MOST_REQUESTS)

    @property
    def url(self) -> str:
        """The server that is asked first, because it answered last."""
        return self._urls[self._preferred]

    @property
    def http(self) -> aiohttp.ClientSession:
        """The connections. Raises Unavailable when they are closed."""
        if self._http is None or self._http.closed:
            raise Unavailable(f"The connection to {self._store} is closed")
        return self._http

    def open(self) -> None:
        """Get ready. It needs a running event loop."""
        ssl = self._ssl if self._ssl is not None else True
        self._http = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=ssl, limit=0))

    async def aclose(self) -> None:
        """Disconnect."""
        if self._http is not None:
            await self._http.close()

    def avoid(self, url: str) -> None:
        """Ask another server first from now on, if this is the one that is asked first."""
        if url == self.url:
            self._preferred = (self._preferred + 1) % len(self._urls)

    def deadline(self) -> float:
        """Return when a request that begins now must have ended."""
        return self._clock.monotonic() + self._timeout_s

    async def ask(
        self,
        try_once: Callable[[str, float], Awaitable[T]],
        *,
        changes: bool,
        until: float | None = None,
    ) -> tuple[T, bool]:
        """Try the servers in turn; also say whether an earlier try may have made the change.

        `try_once` gets a server's URL and how many seconds it has. Raises Unavailable; AuthFailed
        if no server's certificate is accepted; OutcomeUnknown if `changes` and a try may have made
        the change.
        """
        deadline = self.deadline() if until is None else until
        perhaps_done = False
        tries = 0
        failure = "no try"
        untrusted: set[str] = set()
        while (left := deadline - self._clock.monotonic()) > 0:
            url = self.url
            try:
                async with self._turn(left):
                    return await try_once(url, self._limit(tries, left)), perhaps_done
            except NotDoneError as error:
                failure = f"{url}: {error}"
                untrusted = untrusted | {url} if error.untrusted else untrusted - {url}
                if untrusted.issuperset(self._urls) and not perhaps_done:
                    raise AuthFailed(failure) from None
            except PerhapsDoneError as error:
                failure = f"{url}: {error}"
                perhaps_done = True
            self.avoid(url)
            tries += 1
            await self._pause(tries, deadline)
        problem = f"{self._store} gave no answer within {self._timeout_s:g} s; the last: {failure}"
        raise OutcomeUnknown(problem) if changes and perhaps_done else Unavailable(problem)

    @asynccontextmanager
    async def _turn(self, limit_s: float) -> AsyncIterator[None]:
        """Wait until few enough requests are under way. Raises NotDoneError."""
        try:
            async with asyncio.timeout(limit_s):
                await self._turns.acquire()
        except TimeoutError:
            raise NotDoneError("too many other requests were under way") from None
        try:
            yield
        finally:
            self._turns.release()

    async def send(
        self,
        method: str,
        url: str,
        limit_s: float,
        *,
        content: bytes = b"",
        headers: Mapping[str, str],
        connect_s: float = CONNECT_S,
    ) -> HttpReply:
        """Send one request to one server. Raises NotDoneError, PerhapsDoneError."""
        # Later rounds give a busy server, or a busy client, more time for it.
        connect_s = min(max(connect_s, limit_s / 2), limit_s)
        limit = aiohttp.ClientTimeout(total=limit_s, sock_connect=connect_s)
        # aiohttp warns of large bodies that are bytes.
        body = io.BytesIO(content) if content else None
        try:
            async with self.http.request(
                method, url, data=body, headers=headers, timeout=limit
            ) as response:
                return HttpReply(response.status, response.headers, await response.read())
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            wrong = isinstance(error, aiohttp.ClientConnectorCertificateError)
            raise NotDoneError(f"can't connect: {error}", untrusted=wrong) from None
        except TimeoutError:
            raise PerhapsDoneError(f"no reply within {limit_s:.1f} s") from None
        except (aiohttp.ClientError, OSError) as error:
            raise PerhapsDoneError(f"the connection broke: {error!r}") from None

    def _limit(self, tries: int, left: float) -> float:
        """How long this try may take, so that time is left for other servers."""
        if len(self._urls) == 1:
            return left
        return min(left, _FIRST_TRY_S * (1 << tries // len(self._urls)))

    async def _pause(self, tries: int, until: float) -> None:
        rounds, within = divmod(tries, len(self._urls))
        if within == 0:
            pause = _PAUSES_S[min(rounds, len(_PAUSES_S)) - 1]
            await asyncio.sleep(max(0.0, min(pause, until - self._clock.monotonic())))
