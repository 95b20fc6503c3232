"""A client of the controllers: finds the active one, retries safely, speaks plain dicts.

Rule: a change carries one request id through all its tries, so a retry after a lost answer never
acts twice (the controllers remember outcomes by that id). The client follows the leader that an
answer names, goes round when nobody answers, waits as long as it is told to by who is overloaded,
and gives up at its deadline with the last reason.
"""

import asyncio
import ssl
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp
import msgspec

from metadata.uuids import uuid7, uuid_text
from runtime.randomness import from_system

_RETRY_STATUS = frozenset({421, 429, 503})
_TOO_MANY = 429
_PAUSE_S = 0.05


class ClientError(Exception):
    """A request was refused, or nobody answered; `code` is the error's name."""

    def __init__(self, code: str, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.code = code
        self.status = status


class Access(msgspec.Struct, frozen=True):
    """What a client needs to be let in."""

    token: str | None = None
    ca: str | None = None
    cert: str | None = None
    key: str | None = None

    def context(self) -> ssl.SSLContext | None:
        """The TLS context, or None when no authority is named (system's authorities)."""
        if self.ca is None:
            return None
        context = ssl.create_default_context(cafile=self.ca)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        if self.cert is not None and self.key is not None:
            context.load_cert_chain(self.cert, self.key)
        return context


class QuorateClient:
    """`async with QuorateClient([...]) as client: await client.get("/v1/topics")`."""

    def __init__(
        self,
        controllers: Sequence[str],
        access: Access | None = None,
        deadline_s: float = 10.0,
        client_id: str = "quorate-cli",
    ) -> None:
        if not controllers:
            raise ValueError("name at least one controller's URL")
        self._urls = list(controllers)
        self._access = access or Access()
        self._deadline_s = deadline_s
        self._client_id = client_id
        self._random = from_system()
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        context = self._access.context()
        connector = aiohttp.TCPConnector(ssl=context if context is not None else True)
        self._session = aiohttp.ClientSession(connector=connector)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Any:
        """Read; linearizable unless the query says otherwise."""
        return await self._call("GET", path, None, query or {}, {})

    async def change(
        self, method: str, path: str, body: Mapping[str, Any] | None, reason: str = ""
    ) -> Any:
        """Change something, at most once, however often the answer is lost."""
        request_id = uuid7(int(time.time() * 1000), self._random.getrandbits(74))
        headers = {"x-quorate-request-id": uuid_text(request_id)}
        if reason:
            headers["x-quorate-reason"] = reason
        return await self._call(method, path, body, {}, headers)

    async def from_one(
        self, url: str, path: str, query: Mapping[str, str] | None = None, deadline_s: float = 2.0
    ) -> Any:
        """Ask exactly this controller, once. Raises ClientError."""
        try:
            return await self._once(url, "GET", path, None, query or {}, {}, deadline_s)
        except _Retry as retry:
            raise retry.error from None

    async def _call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        query: Mapping[str, str],
        headers: Mapping[str, str],
    ) -> Any:
        until = time.monotonic() + self._deadline_s
        last = ClientError("NO_ANSWER", "no controller was asked")
        at = 0
        while (left := until - time.monotonic()) > 0:
            url = self._urls[at % len(self._urls)]
            try:
                return await self._once(url, method, path, body, query, headers, min(left, 5.0))
            except _Retry as retry:
                last = retry.error
                if retry.leader is not None and retry.leader != url:
                    if retry.leader not in self._urls:
                        self._urls.append(retry.leader)
                    at = self._urls.index(retry.leader)
                    continue
                if retry.wait_s > 0:
                    # It is the right one, and has too much to do; not all come at once.
                    pause_s = retry.wait_s * (1 + 0.5 * self._random.random())
                    await asyncio.sleep(min(pause_s, left))
                    continue
            at += 1
            await asyncio.sleep(min(_PAUSE_S, left))
        raise ClientError(last.code, f"{last} (tried for {self._deadline_s:.0f} s)", last.status)

    async def _once(
        self,
        url: str,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        deadline_s: float,
    ) -> Any:
        if self._session is None:
            raise RuntimeError("use the client in `async with`")
        sent = {"x-quorate-client-id": self._client_id, "accept": "application/json", **headers}
        if self._access.token is not None:
            sent["authorization"] = f"Bearer {self._access.token}"
        try:
            async with self._session.request(
                method,
                url + path,
                params=dict(query),
                json=body,
                headers=sent,
                timeout=aiohttp.ClientTimeout(total=deadline_s),
            ) as answer:
                return _read(answer.status, await answer.read(), url)
        except aiohttp.ClientConnectorCertificateError as error:
            raise ClientError(
                "CERTIFICATE_REFUSED", f"{url}: {error.certificate_error}; name the CA with --ca"
            ) from None
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            what = str(error) or type(error).__name__
            raise _Retry(ClientError("NO_ANSWER", f"{url} does not answer: {what}")) from None


class _Retry(Exception):  # noqa: N818 - a signal within this file, not an error of its own
    def __init__(self, error: ClientError, leader: str | None = None, wait_s: float = 0.0) -> None:
        super().__init__(str(error))
        self.error = error
        self.leader = leader
        self.wait_s = wait_s


def _read(status: int, body: bytes, url: str) -> Any:
    try:
        value = msgspec.json.decode(body) if body else None
    except msgspec.DecodeError:
        value = None
    if status < 400:
        return value
    fields = value if isinstance(value, dict) else {}
    error = ClientError(
        str(fields.get("code", f"HTTP_{status}")),
        str(fields.get("message", f"{url} answered {status}")),
        status,
    )
    if status in _RETRY_STATUS:
        wait_ms = fields.get("retryAfterMs") if status == _TOO_MANY else None
        raise _Retry(error, fields.get("leaderUrl"), (wait_ms or 0) / 1000)
    raise error


def read_token(path: Path) -> str:
    """Read a token's file. Raises ClientError when it isn't there."""
    try:
        return path.read_text().strip()
    except OSError as error:
        raise ClientError(
            "NO_TOKEN", f"{path}: can't be read ({error.strerror}); name another with --token-file"
        ) from None
