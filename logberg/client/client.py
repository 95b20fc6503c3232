"""A client of the controllers: finds the active one, retries safely, answers with typed messages.

Rule: a change carries one request id through all its tries, so a retry after a lost answer never
acts twice (the controllers remember outcomes by that id). The client follows the leader that an
answer names. When a controller doesn't answer, it tries the next one. When a controller is
overloaded, it waits for the time that the answer gives. At its deadline it gives up with the last
reason. It follows a leader's URL only over the scheme of the answer that names it. It never
follows HTTP redirects. `logberg.client.access` decides which controllers get the token.
"""

import asyncio
import ssl
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

import aiohttp
import msgspec

from logberg.client.access import Access, AccessError, read_token
from logberg.client.client_errors import ClientError, no_answer, unknown_outcome
from logberg.client.operations import Operations
from metadata.errors import ErrorCode
from metadata.messages.errors import ErrorReply
from metadata.messages.versions import Agreed
from metadata.uuids import uuid7, uuid_text
from runtime.http.origins import may_follow
from runtime.randomness import Random, from_system

__all__ = ["Access", "ClientError", "LogbergClient", "read_token", "unknown_outcome"]

T = TypeVar("T")

REQUEST_ID = "x-logberg-request-id"
_RETRY_STATUS = frozenset({421, 429, 502, 503, 504})
"""Proxies send 502 and 504; controllers send the others."""
_TOO_MANY = 429
_PAUSE_S = 0.05
_TRY_S = 5.0
_FOLLOWED_AT_ONCE = 2
"""Leaders' URLs followed without a pause. Two controllers may name each other for ever."""
_URLS_MAX = 64


class LogbergClient(Operations):
    """`async with LogbergClient([...]) as client: await client.topics()`."""

    def __init__(
        self,
        controllers: Sequence[str],
        access: Access | None = None,
        deadline_s: float = 10.0,
        client_id: str = "logberg-cli",
    ) -> None:
        """`controllers`: their URLs. Raises ValueError without one."""
        if not controllers:
            raise ValueError("name at least one controller's URL")
        self._named = frozenset(controllers)
        self._urls = list(controllers)
        self._access = access or Access()
        self._deadline_s = deadline_s
        self._client_id = client_id
        self._random = from_system()
        self._session: aiohttp.ClientSession | None = None
        self._agreed = Agreed()
        self.in_doubt: set[str] = set()
        """Request ids of changes that were sent and have not been answered."""

    async def __aenter__(self) -> Self:
        """Raises runtime.sockets.tls.TlsFilesError."""
        # No answer over http:// leads to https://, and reading the system's CAs takes long.
        needs_tls = any(url.startswith("https://") for url in self._urls)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=self._access.context() if needs_tls else True),
            cookie_jar=aiohttp.DummyCookieJar(),
            trace_configs=[_noting_what_is_sent()],
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def get(self, path: str, reply: type[T], query: Mapping[str, str] | None = None) -> T:
        return await self._call("GET", path, reply, None, query or {}, {})

    async def change(
        self,
        method: str,
        path: str,
        reply: type[T],
        body: Mapping[str, Any] | None = None,
        reason: str = "",
        *,
        request_id: str | None = None,
        query: Mapping[str, str] | None = None,
    ) -> T:
        if request_id is None:
            request_id = uuid_text(uuid7(int(time.time() * 1000), self._random.getrandbits(74)))
        headers = {REQUEST_ID: request_id}
        if reason:
            headers["x-logberg-reason"] = reason
        return await self._call(method, path, reply, body, query or {}, headers)

    async def from_one(
        self,
        url: str,
        path: str,
        reply: type[T],
        query: Mapping[str, str] | None = None,
        deadline_s: float = 2.0,
    ) -> T:
        try:
            return await self._once(url, "GET", path, reply, None, query or {}, {}, deadline_s)
        except _Retry as retry:
            raise retry.error from None

    async def _call(
        self,
        method: str,
        path: str,
        reply: type[T],
        body: Mapping[str, Any] | None,
        query: Mapping[str, str],
        headers: Mapping[str, str],
    ) -> T:
        until = time.monotonic() + self._deadline_s
        request_id = headers.get(REQUEST_ID, "")
        turns = _Turns(self._urls, self._random)
        while (left := until - time.monotonic()) > 0 and turns.url is not None:
            try:
                found = await self._once(
                    turns.url, method, path, reply, body, query, headers, min(left, _TRY_S)
                )
            except _Retry as retry:
                await asyncio.sleep(min(turns.after(retry), left))
            except ClientError as error:
                if request_id not in self.in_doubt:
                    raise
                raise unknown_outcome(request_id, str(error), error.status) from None
            else:
                self.in_doubt.discard(request_id)
                return found
        raise self._given_up(turns.why, request_id)

    def _given_up(self, last: ClientError, request_id: str) -> ClientError:
        """The error after the last try."""
        if request_id not in self.in_doubt:
            if not last.reply.retriable:
                return last
            message = f"{last} (tried for {self._deadline_s:g} s)"
            reply = msgspec.structs.replace(last.reply, message=message)
            return ClientError(last.code, message, last.status, reply)
        return unknown_outcome(request_id, str(last), last.status)

    async def _once(
        self,
        url: str,
        method: str,
        path: str,
        reply: type[T],
        body: Mapping[str, Any] | None,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        deadline_s: float,
    ) -> T:
        """Ask `url` once. Raises _Retry where another try may help, ClientError where not."""
        if self._session is None:
            raise RuntimeError("use the client in `async with`")
        try:
            shown = self._access.authorization(url, named=url in self._named)
        except AccessError as error:
            raise _Retry(ClientError("TOKEN_NOT_SENT", str(error)), hopeless=True) from None
        headers = {
            "x-logberg-client-id": self._client_id,
            "accept": "application/json",
            **self._agreed.headers(url),
            **headers,
        }
        # From here on the change may be made, until an answer or an error rules it out.
        doubt, trail = _Doubt(self.in_doubt, headers.get(REQUEST_ID)), _Trail()
        try:
            async with self._session.request(
                method,
                url + path,
                params=dict(query),
                json=body,
                headers={**self._agreed.named(url, headers), **shown},
                allow_redirects=False,
                trace_request_ctx=trail,
                timeout=aiohttp.ClientTimeout(total=deadline_s, sock_connect=deadline_s * 0.9),
            ) as answer:
                status, said = answer.status, await answer.read()
                self._agreed.heard(url, answer.headers)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            self._agreed.forget(url)
            doubt.none_from_this()
            raise _not_connected(url, error) from None
        except aiohttp.InvalidURL:
            doubt.none_from_this()
            wrong = ClientError("NO_ANSWER", f"{url} is not a usable URL")
            raise _Retry(wrong, hopeless=True) from None
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            silent = isinstance(error, TimeoutError)
            self._agreed.forget(url)
            if not trail.sent:
                # The deadline passed before the connection was made.
                doubt.none_from_this()
            raise _Retry(_broken(url, error, deadline_s), silent=silent) from None
        try:
            return _read(status, said, url, reply)
        except (_Retry, ClientError) as answered:
            refused = answered.error if isinstance(answered, _Retry) else answered
            if refused.code not in _IN_DOUBT and not _is_a_proxys(refused):
                doubt.none_from_this()
            raise


class _Trail:
    """How far one try got."""

    sent = False
    """Whether the request's head was sent, or was about to be."""


def _noting_what_is_sent() -> aiohttp.TraceConfig:
    """Return a trace configuration that marks each request's `_Trail` as sent."""

    async def headers_sent(_session: Any, context: Any, _sent: Any) -> None:
        context.trace_request_ctx.sent = True

    tracing = aiohttp.TraceConfig()
    tracing.on_request_headers_sent.append(headers_sent)
    return tracing


class _Doubt:
    """Whether one try of a change may have made it."""

    def __init__(self, in_doubt: set[str], request_id: str | None) -> None:
        self._in_doubt = in_doubt
        self._request_id = request_id
        self._before = request_id in in_doubt
        if request_id is not None:
            in_doubt.add(request_id)

    def none_from_this(self) -> None:
        """Note that this try changed nothing. An earlier try may have."""
        if self._request_id is not None and not self._before:
            self._in_doubt.discard(self._request_id)


class _Turns:
    """Chooses the URL of the next try, and the pause before it."""

    def __init__(self, urls: list[str], random: Random) -> None:
        """`urls`: those known; a leader that an answer names is added."""
        self._urls = urls
        self._random = random
        self._at = 0
        self._followed = 0
        self._hopeless: dict[str, ClientError] = {}
        self._last = ClientError("NO_ANSWER", "no controller was asked")
        self._weight = 0

    @property
    def url(self) -> str | None:
        """The URL to ask; None when no URL is worth another try."""
        for at in range(self._at, self._at + len(self._urls)):
            url = self._urls[at % len(self._urls)]
            if url not in self._hopeless:
                self._at = at % len(self._urls)
                return url
        return None

    @property
    def why(self) -> ClientError:
        """The most helpful of the errors of all tries."""
        return next(iter(self._hopeless.values()), self._last)

    def after(self, retry: "_Retry") -> float:
        """Take note of a try that failed. Returns the seconds until the next one."""
        asked = self._urls[self._at]
        # What a controller answered says more than a connection that broke, and that says more
        # than silence: the last try has little time left.
        weight = 2 if retry.error.status else 0 if retry.silent else 1
        if weight >= self._weight:
            self._last, self._weight = retry.error, weight
        if retry.hopeless:
            self._hopeless[asked] = retry.error
            return 0.0
        if self._follow(asked, retry.leader):
            self._followed += 1
            return 0.0 if self._followed % (_FOLLOWED_AT_ONCE + 1) else _PAUSE_S
        if retry.wait_s > 0:
            # This is the leader, and it is overloaded. Jitter spreads the clients that retry.
            return retry.wait_s * (1 + 0.5 * self._random.random())
        self._at = (self._at + 1) % len(self._urls)
        return _PAUSE_S

    def _follow(self, asked: str, leader: str | None) -> bool:
        """Go to the leader that `asked` named. Returns False if it named no usable one."""
        if leader is None or leader == asked or not may_follow(asked, leader):
            return False
        if leader not in self._urls:
            if len(self._urls) >= _URLS_MAX:
                return False
            self._urls.append(leader)
        self._at = self._urls.index(leader)
        return True


_IN_DOUBT = frozenset(
    code.value
    for code in (
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.SHUTTING_DOWN,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    )
)
"""A change that gets one of these answers may have been made."""


def _is_a_proxys(error: ClientError) -> bool:
    return error.status >= 500 and error.code == f"HTTP_{error.status}"


class _Retry(Exception):  # noqa: N818 - a signal within this file, not an error of its own
    def __init__(
        self,
        error: ClientError,
        leader: str | None = None,
        wait_s: float = 0.0,
        *,
        hopeless: bool = False,
        silent: bool = False,
    ) -> None:
        super().__init__(str(error))
        self.error = error
        self.leader = leader
        self.wait_s = wait_s
        self.hopeless = hopeless
        """Asking the same URL again can't succeed."""
        self.silent = silent
        """The deadline of the try passed without an answer."""


def _not_connected(url: str, error: aiohttp.ClientError) -> _Retry:
    """The connection was never made, so nothing was sent."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        why = error.certificate_error
        if isinstance(why, ssl.SSLCertVerificationError) and not getattr(why, "verify_code", 0):
            # The certificate is sound, and `runtime.sockets.peer_proof` refused it.
            refused = f"the token is not sent to {url}: {why.strerror or why}"
        else:
            refused = f"{url}: {why}; name the CA of its cluster with --ca (LOGBERG_CA)"
        return _Retry(ClientError("CERTIFICATE_REFUSED", refused), hopeless=True)
    if isinstance(error, aiohttp.ClientConnectorSSLError):
        plain = "WRONG_VERSION_NUMBER" in str(error) or "RECORD_LAYER_FAILURE" in str(error)
        said = f"{url} doesn't use TLS" if plain else f"{url}: no TLS connection ({error})"
        advice = "; use http://, or check the port" if plain else ""
        return _Retry(ClientError("NO_TLS", said + advice), hopeless=plain)
    return _Retry(no_answer(url, str(error) or type(error).__name__))


def _broken(url: str, error: Exception, deadline_s: float) -> ClientError:
    """The request may have been sent."""
    if isinstance(error, TimeoutError):
        return no_answer(url, f"no answer within {deadline_s:.1f} s")
    hung_up = isinstance(error, (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError))
    if url.startswith("http://") and (hung_up or isinstance(error, aiohttp.ClientResponseError)):
        return no_answer(url, "it doesn't use plain HTTP; if it uses TLS, use https://")
    if hung_up:
        # A TLS 1.3 server that doesn't accept our certificate also closes the connection.
        return no_answer(
            url, f"it closed the connection ({error}); check that it trusts our certificate"
        )
    return no_answer(url, str(error) or type(error).__name__)


def _read(status: int, body: bytes, url: str, wanted: type[T]) -> T:
    """Return the message that was answered. Raises _Retry, ClientError."""
    if 200 <= status < 300:
        try:
            return msgspec.json.decode(body, type=wanted)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
            # A change may have been made all the same.
            code = ErrorCode.UNKNOWN_SERVER_ERROR.value
            said = f"{url} did not answer with {wanted.__name__}: {problem}"
            raise ClientError(code, f"{said}; check that it is a controller", status) from None
    try:
        value = msgspec.json.decode(body) if body else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        value = None
    reply = _error_reply(value, status, url)
    error = ClientError(reply.code, reply.message, status, reply)
    if status in _RETRY_STATUS:
        wait_ms = reply.retry_after_ms if status == _TOO_MANY else None
        raise _Retry(error, reply.leader_url, (wait_ms or 0) / 1000)
    raise error


def _error_reply(value: Any, status: int, url: str) -> ErrorReply:
    """Read an error's body, or make one from the status if the body is not an `ErrorReply`."""
    try:
        return msgspec.convert(value, ErrorReply)
    except msgspec.ValidationError:
        said = value if isinstance(value, dict) else {}
        code = str(said.get("code", f"HTTP_{status}"))
        return ErrorReply(code, str(said.get("message", f"{url} answered {status}")))
