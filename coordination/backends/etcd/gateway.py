"""Asks etcd by its JSON gateway, and fails over between its servers.

Rule: only requests that may be made twice come here, because a request whose reply is lost is sent
again, to the next server. Reads may be repeated anyhow. Each change carries a condition that no
longer holds once the change was made.

A request asks for a server that knows a leader (`hasleader`). So a server that is cut off refuses
at once, and the next one is asked.
"""

import asyncio
import io
import ssl as tls
from typing import Final, NamedTuple, TypeVar

import aiohttp
import msgspec
from msgspec import Struct

from coordination.backend import Auth
from coordination.backends.etcd import messages as wire
from coordination.errors import (
    AuthFailed,
    CoordinationError,
    OutcomeUnknown,
    TxnTooLarge,
    Unavailable,
)
from runtime.clock import Clock

_CONNECT_S: Final = 0.5
_FIRST_TRY_S: Final = 1.0
"""How long the first of several servers may take. Each further try may take twice as long."""
_PAUSES_S: Final = (0.0, 0.02, 0.05, 0.1, 0.2)
"""Between two rounds over all servers. The last one repeats."""
_INVALID, _NOT_FOUND, _EXISTS, _FORBIDDEN = 3, 5, 6, 7
_EXHAUSTED, _PRECONDITION, _OUT_OF_RANGE, _NOT_LOGGED_IN = 8, 9, 11, 16
"""Of gRPC's codes those that etcd answers with on purpose."""
_NOTHING_DONE: Final = ("no leader", "too many requests", "not started", "server stopped")
"""What etcd says when it refuses a request before it proposes anything."""

Reply = TypeVar("Reply", bound=Struct)


class LeaseGone(CoordinationError):  # noqa: N818 - as its siblings in errors.py
    """Within this backend: the request named a lease that is over."""


class RevisionCompacted(CoordinationError):  # noqa: N818 - as its siblings in errors.py
    """Within this backend: the request asked for a revision that etcd has forgotten."""


class AlreadyDone(CoordinationError):  # noqa: N818 - as its siblings in errors.py
    """Within this backend: what the request makes is there already."""


class _NotDoneError(Exception):
    """This server didn't do it. Another may."""


class _PerhapsDoneError(Exception):
    """This server didn't say whether it did it."""


class _NotLoggedInError(Exception):
    """The login is too old."""


class RawReply(NamedTuple):
    """A reply, and whether an earlier try of the same request may have been carried out."""

    text: bytes
    repeated: bool


class EtcdGateway:
    """One client of one cluster."""

    def __init__(
        self,
        urls: tuple[str, ...],
        *,
        timeout_s: float,
        clock: Clock,
        ssl: tls.SSLContext | None,
        auth: Auth | None,
    ) -> None:
        """Make a client of the servers at these URLs. It needs a running event loop to ask."""
        self._urls = urls
        self._timeout_s = timeout_s
        self._clock = clock
        self._ssl = ssl
        self._auth = auth if auth is not None and auth.username else None
        self._token = auth.token if auth is not None else ""
        self._preferred = 0
        self._http: aiohttp.ClientSession | None = None

    @property
    def url(self) -> str:
        """The server that is asked first, because it answered last."""
        return self._urls[self._preferred]

    @property
    def token(self) -> str:
        """What to send along; empty without a login."""
        return self._token

    @property
    def http(self) -> aiohttp.ClientSession:
        """The connections. Raises Unavailable when they are closed."""
        if self._http is None or self._http.closed:
            raise Unavailable("The connection to etcd is closed")
        return self._http

    async def open(self) -> None:
        """Connect and log in. Raises AuthFailed, Unavailable."""
        ssl = self._ssl if self._ssl is not None else True
        # One connection is enough for one request; hundreds may be under way.
        connector = aiohttp.TCPConnector(ssl=ssl, limit=256, force_close=False)
        self._http = aiohttp.ClientSession(connector=connector)
        if self._auth is not None:
            await self._log_in(self._clock.monotonic() + self._timeout_s)
        await self.ask(
            "/v3/kv/range", wire.RangeRequest(key=b"\0", keys_only=True), wire.RangeReply
        )

    async def aclose(self) -> None:
        """Disconnect."""
        if self._http is not None:
            await self._http.close()

    def avoid(self, url: str) -> None:
        """Ask another server first from now on, if this is the one that is asked first."""
        if url == self.url:
            self._preferred = (self._preferred + 1) % len(self._urls)

    async def ask(self, path: str, request: Struct, kind: type[Reply]) -> Reply:
        """Read. Raises Unavailable, AuthFailed, RevisionCompacted."""
        answer = await self._answer(path, request, changes=False)
        return _decoded(answer.text, kind)

    async def change(self, path: str, request: Struct, kind: type[Reply]) -> tuple[Reply, bool]:
        """Make a change; also say whether an earlier try may have made it already.

        Raises OutcomeUnknown, Unavailable, AuthFailed, LeaseGone, AlreadyDone, TxnTooLarge.
        """
        answer = await self._answer(path, request, changes=True)
        return _decoded(answer.text, kind), answer.repeated

    async def _answer(self, path: str, request: Struct, *, changes: bool) -> RawReply:
        until = self._clock.monotonic() + self._timeout_s
        content = wire.encode(request)
        perhaps_done = False
        tries = 0
        failure = "no try"
        while (left := until - self._clock.monotonic()) > 0:
            url = self.url
            try:
                text = await self._try_once(url + path, content, self._limit(tries, left))
                return RawReply(text, perhaps_done)
            except _NotLoggedInError as error:
                if self._auth is None or tries > len(self._urls):
                    raise AuthFailed(f"etcd refuses the login: {error}") from None
                await self._log_in(until)
            except _NotDoneError as error:
                failure = f"{url}: {error}"
                self.avoid(url)
            except _PerhapsDoneError as error:
                failure = f"{url}: {error}"
                perhaps_done = True
                self.avoid(url)
            tries += 1
            await self._pause(tries, until)
        problem = f"etcd gave no answer within {self._timeout_s:g} s; the last try: {failure}"
        raise OutcomeUnknown(problem) if changes and perhaps_done else Unavailable(problem)

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

    async def _try_once(self, url: str, content: bytes, limit_s: float) -> bytes:
        headers = {"Content-Type": "application/json", "Grpc-Metadata-hasleader": "true"}
        if self._token:
            headers["Authorization"] = self._token
        limit = aiohttp.ClientTimeout(total=limit_s, sock_connect=min(_CONNECT_S, limit_s))
        try:
            async with self.http.post(
                url, data=io.BytesIO(content), headers=headers, timeout=limit
            ) as response:
                text = await response.read()
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise _NotDoneError(f"can't connect: {error}") from None
        except TimeoutError:
            raise _PerhapsDoneError(f"no reply within {limit_s:.1f} s") from None
        except (aiohttp.ClientError, OSError) as error:
            raise _PerhapsDoneError(f"the connection broke: {error!r}") from None
        if response.status != 200:
            _raise_refusal(response.status, text)
        return text

    async def _log_in(self, until: float) -> None:
        """Fetch a token from any server. Raises AuthFailed, Unavailable."""
        assert self._auth is not None
        self._token = ""
        content = wire.encode(wire.AuthRequest(self._auth.username, self._auth.password))
        tries = 0
        failure = "no try"
        while (left := until - self._clock.monotonic()) > 0:
            url = self.url
            try:
                path = "/v3/auth/authenticate"
                text = await self._try_once(url + path, content, self._limit(tries, left))
            except (_NotDoneError, _PerhapsDoneError) as error:
                failure = f"{url}: {error}"
                self.avoid(url)
            except _NotLoggedInError as error:
                raise AuthFailed(f"etcd refuses the login: {error}") from None
            except AlreadyDone:
                return  # etcd's own client goes on, too: this cluster asks nobody to log in.
            else:
                self._token = _decoded(text, wire.AuthReply).token
                return
            tries += 1
            await self._pause(tries, until)
        raise Unavailable(f"nobody could log in to etcd in time; the last try: {failure}")


def _decoded(text: bytes, kind: type[Reply]) -> Reply:
    try:
        return wire.decode(text, kind)
    except msgspec.DecodeError as error:
        raise Unavailable(
            f"The server's answer is none of etcd's ({error}). Is the URL right?"
        ) from None


def _raise_refusal(status: int, text: bytes) -> None:
    """Raise what etcd's error means."""
    try:
        refusal = wire.decode(text, wire.RefusalReply)
    except msgspec.DecodeError:
        raise _PerhapsDoneError(f"HTTP {status}: {text[:200]!r}") from None
    code, says = refusal.code, (refusal.message or refusal.error).removeprefix("etcdserver: ")
    if code == _NOT_FOUND and "lease not found" in says:
        raise LeaseGone(says)
    if code == _OUT_OF_RANGE and "compacted" in says:
        raise RevisionCompacted(says)
    if says in {"lease already exists", "authentication is not enabled"} or code == _EXISTS:
        raise AlreadyDone(says)
    if "authentication failed" in says or code == _FORBIDDEN:
        raise AuthFailed(f"etcd refuses: {says}")
    if code == _NOT_LOGGED_IN or says == "user name is empty":
        raise _NotLoggedInError(says)
    if "too large" in says or "too many operations" in says:
        raise TxnTooLarge(f"etcd refuses: {says}")
    if any(words in says for words in _NOTHING_DONE):
        raise _NotDoneError(says)
    if code in {_INVALID, _EXHAUSTED, _PRECONDITION, _OUT_OF_RANGE, _NOT_FOUND}:
        raise Unavailable(f"etcd refuses: {says}")
    raise _PerhapsDoneError(says)
