"""Asks etcd by its JSON gateway: what to send, and what an answer means.

Rule: a request asks for a server that knows a leader (`hasleader`). So a server that is cut off
refuses at once, and `HttpServers` asks the next one.

When etcd says that a login is too old, the gateway logs in again and repeats the request.
"""

from typing import Final, TypeVar

import aiohttp
import msgspec
from msgspec import Struct

from coordination.backend import Auth
from coordination.backends.etcd import messages as wire
from coordination.errors import AuthFailed, CoordinationError, TxnTooLarge, Unavailable
from coordination.http_servers import HttpServers, NotDoneError, PerhapsDoneError

_HEADERS: Final = {"Content-Type": "application/json", "Grpc-Metadata-hasleader": "true"}
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


class _NotLoggedInError(Exception):
    """The login is too old."""


class EtcdGateway:
    """One client of one cluster."""

    def __init__(self, servers: HttpServers, auth: Auth | None) -> None:
        """Take the servers and whom to log in as; None asks without a login."""
        self._servers = servers
        self._auth = auth if auth is not None and auth.username else None
        self._token = auth.token if auth is not None else ""

    @property
    def url(self) -> str:
        """The server that is asked first, because it answered last."""
        return self._servers.url

    @property
    def token(self) -> str:
        """What to send along; empty without a login."""
        return self._token

    @property
    def http(self) -> aiohttp.ClientSession:
        """The connections. Raises Unavailable when they are closed."""
        return self._servers.http

    async def open(self) -> None:
        """Connect and log in. Raises AuthFailed, Unavailable."""
        self._servers.open()
        if self._auth is not None:
            await self._log_in(self._servers.deadline())
        await self.ask(
            "/v3/kv/range", wire.RangeRequest(key=b"\0", keys_only=True), wire.RangeReply
        )

    async def aclose(self) -> None:
        """Disconnect."""
        await self._servers.aclose()

    def avoid(self, url: str) -> None:
        """Ask another server first from now on, if this is the one that is asked first."""
        self._servers.avoid(url)

    async def ask(self, path: str, request: Struct, kind: type[Reply]) -> Reply:
        """Read. Raises Unavailable, AuthFailed, RevisionCompacted."""
        reply, _ = await self._answer(path, request, kind, changes=False)
        return reply

    async def change(self, path: str, request: Struct, kind: type[Reply]) -> tuple[Reply, bool]:
        """Make a change; also say whether an earlier try may have made it already.

        Raises OutcomeUnknown, Unavailable, AuthFailed, LeaseGone, AlreadyDone, TxnTooLarge.
        """
        return await self._answer(path, request, kind, changes=True)

    async def _answer(
        self, path: str, request: Struct, kind: type[Reply], *, changes: bool
    ) -> tuple[Reply, bool]:
        until = self._servers.deadline()
        content = wire.encode(request)

        async def try_once(url: str, limit_s: float) -> Reply:
            try:
                text = await self._send(url + path, content, limit_s)
            except _NotLoggedInError as error:
                if self._auth is None:
                    raise AuthFailed(f"etcd refuses the login: {error}") from None
                await self._log_in(until)
                raise NotDoneError("the login was too old") from None
            return _decoded(text, kind)

        return await self._servers.ask(try_once, changes=changes, until=until)

    async def _send(self, url: str, content: bytes, limit_s: float) -> bytes:
        login = {"Authorization": self._token} if self._token else {}
        reply = await self._servers.send(
            "POST", url, limit_s, content=content, headers={**_HEADERS, **login}
        )
        if reply.status != 200:
            _raise_refusal(reply.status, reply.content)
        return reply.content

    async def _log_in(self, until: float) -> None:
        """Fetch a token from any server. Raises AuthFailed, Unavailable."""
        assert self._auth is not None
        self._token = ""
        content = wire.encode(wire.AuthRequest(self._auth.username, self._auth.password))

        async def try_once(url: str, limit_s: float) -> str:
            try:
                text = await self._send(url + "/v3/auth/authenticate", content, limit_s)
            except _NotLoggedInError as error:
                raise AuthFailed(f"etcd refuses the login: {error}") from None
            except AlreadyDone:
                return ""  # this cluster asks nobody to log in; etcd's own client goes on, too
            return _decoded(text, wire.AuthReply).token

        self._token, _ = await self._servers.ask(try_once, changes=False, until=until)


def _decoded(text: bytes, kind: type[Reply]) -> Reply:
    try:
        return wire.decode(text, kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Unavailable(
            f"The server's answer is none of etcd's ({error}). Is the URL right?"
        ) from None


def _raise_refusal(status: int, text: bytes) -> None:
    """Raise what etcd's error means."""
    try:
        refusal = wire.decode(text, wire.RefusalReply)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise PerhapsDoneError(f"HTTP {status}: {text[:200]!r}") from None
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
        raise NotDoneError(says)
    if code in {_INVALID, _EXHAUSTED, _PRECONDITION, _OUT_OF_RANGE, _NOT_FOUND}:
        raise Unavailable(f"etcd refuses: {says}")
    raise PerhapsDoneError(says)
