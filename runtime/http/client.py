"""Requests over HTTP: one session, kept-alive connections, a deadline for each request.

Rule: `on_reply` is called exactly once for each request, on the loop, and never before `request`
has returned. The client follows no redirect, because only the caller knows which servers it trusts.
It sends nothing twice, because only the caller knows whether a repeat is safe. The one exception is
a GET whose kept-alive connection was dead.

`Unreachable.refused` is true only if the connection was never made. If the connection broke or the
deadline passed, it is unknown whether the request took effect.
"""

import asyncio
import errno
import ssl
from typing import Final

import aiohttp
from structlog.typing import FilteringBoundLogger
from yarl import URL

from runtime.http.content_digest import CONTENT_DIGEST, content_digest, is_content
from runtime.http.requests import OnReply, Reply, Request, Unreachable

ANSWER_BYTES_MAX: Final = 64 * 1024 * 1024
IDLE_S: Final = 4.0
"""Shorter than the server's `HttpLimits.head_s`. The client must close an idle connection before
the server does: otherwise it could send a request on a connection that the server is closing."""


class PendingHttpRequest:
    """`runtime.http.requests.PendingRequest` over a task."""

    __slots__ = ("_task",)

    def __init__(self, task: "asyncio.Task[None]") -> None:
        self._task = task

    def abandon(self) -> None:
        self._task.cancel()


class HttpRequester:
    """`runtime.http.requests.Requester` over one aiohttp session. To be made on a running loop.

    `token` is sent as a bearer token with each request that has no Authorization of its own.
    """

    def __init__(
        self,
        *,
        log: FilteringBoundLogger,
        tls: ssl.SSLContext | None = None,
        token: str | None = None,
        answer_bytes_max: int = ANSWER_BYTES_MAX,
    ) -> None:
        self._log = log
        self._tls = tls
        self._answer_bytes_max = answer_bytes_max
        self._headers = {} if token is None else {"authorization": f"Bearer {token}"}
        self._tasks: set[asyncio.Task[None]] = set()
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE_S),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            headers={"User-Agent": "logberg", "Accept-Encoding": "identity"},
        )

    def request(
        self, target: str, request: Request, on_reply: OnReply, deadline_s: float
    ) -> PendingHttpRequest:
        task = asyncio.get_running_loop().create_task(
            self._call_back(target, request, on_reply, deadline_s)
        )
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return PendingHttpRequest(task)

    def set_tls(self, tls: ssl.SSLContext) -> None:
        """Use another context for connections that begin from now on."""
        self._tls = tls

    async def close(self) -> None:
        """Abandon what is under way and close all connections."""
        for task in list(self._tasks):
            task.cancel()
        await self._session.close()

    # -- own ---------------------------------------------------------------------------------

    async def _call_back(
        self, target: str, request: Request, on_reply: OnReply, deadline_s: float
    ) -> None:
        on_reply(await self._outcome(target, request, deadline_s))

    async def _outcome(
        self, target: str, request: Request, deadline_s: float
    ) -> Reply | Unreachable:
        try:
            url = _url(target, request)
        except ValueError as error:
            return Unreachable(f"{target!r} is not a usable address: {error}", refused=True)
        try:
            async with asyncio.timeout(deadline_s):
                return await self._exchange(url, request)
        except TimeoutError:
            return Unreachable(f"no answer within {deadline_s:g} s")
        except aiohttp.ClientConnectorError as error:
            untrusted = _is_about_trust(error)
            return Unreachable(_why_not_connected(error), refused=True, untrusted=untrusted)
        except (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError):
            return Unreachable(f"{target!r} is not a usable address", refused=True)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return Unreachable(
                _why_broken(error), untrusted=_is_about_trust(error), hung_up=_hung_up(error)
            )

    async def _exchange(self, url: URL, request: Request) -> Reply | Unreachable:
        said = {CONTENT_DIGEST: content_digest(request.body)} if request.body else {}
        async with self._session.request(
            request.method,
            url,
            data=request.body or None,
            headers={**self._headers, **request.headers, **said},
            ssl=self._tls if self._tls is not None else True,
            allow_redirects=False,
            timeout=_NO_TIMEOUT,
        ) as response:
            body = await self._body(response)
            if body is None:
                response.close()
                return Unreachable(f"an answer of more than {self._answer_bytes_max} bytes")
            headers = {name.lower(): value for name, value in response.headers.items()}
            if not is_content(body, headers.get(CONTENT_DIGEST)):
                return Unreachable("the answer is not what was sent: its checksum is wrong")
            return Reply(response.status, body, headers)

    async def _body(self, response: aiohttp.ClientResponse) -> bytes | None:
        """Return the body; None if it is larger than `answer_bytes_max`."""
        length = response.content_length
        if length is not None and length > self._answer_bytes_max:
            return None
        pieces: list[bytes] = []
        size = 0
        while piece := await response.content.readany():
            size += len(piece)
            if size > self._answer_bytes_max:
                return None
            pieces.append(piece)
        return b"".join(pieces)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            # `on_reply` raised it. Raise it again in a callback, where the loop reports defects.
            asyncio.get_running_loop().call_soon(_raise, error)


_NO_TIMEOUT = aiohttp.ClientTimeout(total=None)


def _raise(error: BaseException) -> None:
    raise error


def _url(target: str, request: Request) -> URL:
    base = URL(target)
    url = base.with_path(base.path.rstrip("/") + request.path)
    return url.with_query(request.query) if request.query else url


def _why_not_connected(error: aiohttp.ClientConnectorError) -> str:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"the server's certificate is not accepted: {error.certificate_error}"
    return f"no connection: {error.os_error.strerror or error.os_error}"


def _is_about_trust(error: BaseException | None) -> bool:
    """Return whether a certificate was refused: the server's by us, or ours by the server."""
    while error is not None:
        if isinstance(
            error, ssl.SSLCertVerificationError | aiohttp.ClientConnectorCertificateError
        ):
            return True
        if isinstance(error, ssl.SSLError) and any(word in str(error) for word in _OF_TRUST):
            return True
        error = error.__cause__ or error.__context__
    return False


_OF_TRUST = ("UNKNOWN_CA", "BAD_CERTIFICATE", "CERTIFICATE_")
"""In the names of TLS's alerts by which a server refuses our certificate."""


def _hung_up(error: Exception) -> bool:
    reset = isinstance(error, OSError) and error.errno in {errno.ECONNRESET, errno.EPIPE}
    return reset or isinstance(error, aiohttp.ServerDisconnectedError)


def _why_broken(error: Exception) -> str:
    if _hung_up(error):
        # A TLS 1.3 server that doesn't accept our certificate also ends the connection this way.
        return "the server hung up before it answered: does it know our certificate?"
    return f"the connection broke: {error or type(error).__name__}"
