"""Asks the controllers: finds the active one, retries safely, answers with typed messages.

Rule: a change carries one request id through all its tries, so a retry after a lost answer never
acts twice (the controllers remember outcomes by that id). The client follows the leader that an
answer names. When a controller doesn't answer, it tries the next one. When a controller is
overloaded, it waits for the time that the answer gives. At its deadline it gives up with the last
reason. It follows a leader's URL only over the scheme of the answer that names it. It never
follows HTTP redirects. `logberg.client.access` decides which controllers get the token.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from io import BytesIO
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

import aiohttp
import msgspec

from logberg.client.access import Access, AccessError
from logberg.client.change_span import ChangeSpan
from logberg.client.client_errors import ClientError, unknown_outcome
from logberg.client.doubt import Doubt, Trail, noting_what_is_sent, rules_it_out
from logberg.client.joining import Joining, TryResult, UnknownRouteError
from logberg.client.request_ids import new_request_id
from logberg.client.tries import Retry, UrlOrder, broken, not_connected, read_answer
from logberg.client.waiting_change import (
    TRACEPARENT,
    ChangeHeaders,
    WaitingChange,
    encoded_request,
    is_short,
    read_outcomes,
)
from metadata.errors import ErrorCode
from metadata.messages.joined_changes import CHANGES_PATH, ChangeOutcome
from metadata.messages.versions import Agreed
from runtime.randomness import from_system

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

T = TypeVar("T")

REQUEST_ID = "x-logberg-request-id"
_TRY_S = 5.0
_SLOW_CHANGE_S = 0.05


class Asking:
    """What every operation of a client is made of: read, change, and ask one controller."""

    def __init__(
        self,
        controllers: Sequence[str],
        access: Access | None = None,
        deadline_s: float = 10.0,
        client_id: str = "logberg-cli",
        tracer: "Tracer | None" = None,
    ) -> None:
        """`controllers`: their URLs. Raises ValueError without one.

        `tracer`: of OpenTelemetry; it gets a span for each change.
        """
        if not controllers:
            raise ValueError("name at least one controller's URL")
        self._named = frozenset(controllers)
        self._urls = list(controllers)
        self._access = access or Access()
        self._deadline_s = deadline_s
        self._client_id = client_id
        self._tracer = tracer
        self._random = from_system()
        self._session: aiohttp.ClientSession | None = None
        self._agreed = Agreed()
        self._joining: Joining | None = None
        self.in_doubt: set[str] = set()
        """Request ids of changes that were sent and have not been answered."""

    async def __aenter__(self) -> Self:
        """Raises runtime.sockets.tls.TlsFilesError."""
        # No answer over http:// leads to https://, and reading the system's CAs takes long.
        needs_tls = any(url.startswith("https://") for url in self._urls)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=self._access.context() if needs_tls else True),
            cookie_jar=aiohttp.DummyCookieJar(),
            trace_configs=[noting_what_is_sent()],
        )
        self._joining = Joining(
            self._urls, self._random, self._send_some, self._refused, self._given_up
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._joining is not None:
            await self._joining.close()
        if self._session is not None:
            await self._session.close()

    async def get(self, path: str, reply: type[T], query: Mapping[str, str] | None = None) -> T:
        """Read, and return the answer as a `reply`; for routes that have no method here.

        Linearizable unless the query says otherwise. Raises ClientError.
        """
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
        expect_offset: int | None = None,
        query: Mapping[str, str] | None = None,
    ) -> T:
        """Change something, at most once, however often the answer is lost.

        `reason`: kept in the log. `request_id`: that of an earlier call whose outcome is unknown,
        to find it out. `expect_offset`: the offset of the answer in which the caller read what it
        changes; if that has changed since, the change is refused with STALE_EXPECTED_OFFSET. Raises
        ClientError; REQUEST_TIMED_OUT means that the outcome is unknown.
        """
        if request_id is None:
            request_id = new_request_id(self._random)
        said = ChangeHeaders(request_id, reason, expect_offset)
        if self._tracer is None:
            return await self._change(method, path, reply, body, query, said)
        with ChangeSpan(self._tracer, method, path, request_id) as span:
            said = said._replace(traceparent=span.traceparent)
            return await self._change(method, path, reply, body, query, said)

    async def _change(
        self,
        method: str,
        path: str,
        reply: type[T],
        body: Mapping[str, Any] | None,
        query: Mapping[str, str] | None,
        said: ChangeHeaders,
    ) -> T:
        encoded = None if body is None else msgspec.json.encode(body)
        dry_run = (body or query or {}).get("dryRun")
        if self._joining is None or dry_run or not is_short(method, path, encoded):
            return await self._call(method, path, reply, encoded, query or {}, said.alone())
        until = asyncio.get_running_loop().time() + self._deadline_s
        change = WaitingChange(method, path, query or {}, encoded, said, reply, until)
        return cast("T", await self._joining.make(change))

    async def from_one(
        self,
        url: str,
        path: str,
        reply: type[T],
        query: Mapping[str, str] | None = None,
        deadline_s: float = 2.0,
        headers: Mapping[str, str] | None = None,
        method: str = "GET",
    ) -> T:
        """Ask exactly the controller at `url`, once; `reply` bytes: content that is no message.

        Raises ClientError.
        """
        try:
            return await self._once(
                url, method, path, reply, None, query or {}, headers or {}, deadline_s
            )
        except Retry as retry:
            raise retry.error from None

    async def _call(
        self,
        method: str,
        path: str,
        reply: type[T],
        body: bytes | None,
        query: Mapping[str, str],
        headers: Mapping[str, str],
    ) -> T:
        until = time.monotonic() + self._deadline_s
        request_id = headers.get(REQUEST_ID, "")
        order = UrlOrder(self._urls, self._random)
        while (left := until - time.monotonic()) > 0 and order.url is not None:
            try:
                found = await self._once(
                    order.url, method, path, reply, body, query, headers, min(left, _TRY_S)
                )
            except Retry as retry:
                await asyncio.sleep(min(order.after(retry), left))
            except ClientError as error:
                raise self._refused(error, request_id) from None
            else:
                self.in_doubt.discard(request_id)
                return found
        raise self._given_up(order.why, request_id)

    def _refused(self, error: ClientError, request_id: str) -> ClientError:
        """The error after an answer that no repeat helps. An earlier try may have made a change."""
        if request_id not in self.in_doubt:
            return error
        return unknown_outcome(request_id, str(error), error.status)

    def _given_up(self, last: ClientError, request_id: str) -> ClientError:
        """The error after the last try."""
        if request_id not in self.in_doubt:
            if not last.reply.retriable:
                return last
            message = f"{last} (tried for {self._deadline_s:g} s)"
            reply = msgspec.structs.replace(last.reply, message=message)
            return ClientError(last.code, message, last.status, reply)
        return unknown_outcome(request_id, str(last), last.status)

    async def _send_some(
        self, url: str, changes: list[WaitingChange], deadline_s: float
    ) -> list[TryResult]:
        """Send changes to `url`, as `Joining` asks for it."""
        if len(changes) == 1:
            return [await self._send_alone(url, changes[0], deadline_s)]
        ids = [change.headers.request_id for change in changes]
        # One request has one parent: the spans of all changes in it are children of the first's.
        traced = next((c.headers.traceparent for c in changes if c.headers.traceparent), "")
        doubt = Doubt(self.in_doubt, ids)
        try:
            body = await self._once(
                url,
                "POST",
                CHANGES_PATH,
                bytes,
                encoded_request(changes),
                {},
                {TRACEPARENT: traced} if traced else {},
                deadline_s,
                doubt,
            )
        except ClientError as error:
            if error.code == ErrorCode.NOT_FOUND:
                raise UnknownRouteError from None
            raise
        outcomes = read_outcomes(body, url, len(changes))
        results = [
            self._result(change, outcome, url, doubt)
            for change, outcome in zip(changes, outcomes, strict=True)
        ]
        if any(result.retry is None for result in results):
            # The controller serves, and these changes take long. So no other one is asked.
            for _, _, _, retry in results:
                if retry is not None and retry.error.code == ErrorCode.REQUEST_TIMED_OUT:
                    retry.wait_s = retry.wait_s or _SLOW_CHANGE_S
        return results

    async def _send_alone(self, url: str, change: WaitingChange, deadline_s: float) -> TryResult:
        said = change.headers
        try:
            found = await self._once(
                url,
                change.method,
                change.path,
                change.reply,
                change.body,
                change.query,
                said.alone(),
                deadline_s,
            )
        except ClientError as error:
            return TryResult(change, error=self._refused(error, said.request_id))
        self.in_doubt.discard(said.request_id)
        return TryResult(change, found)

    def _result(
        self, change: WaitingChange, outcome: ChangeOutcome, url: str, doubt: Doubt
    ) -> TryResult:
        """Read one outcome of several."""
        request_id = change.headers.request_id
        try:
            found = read_answer(outcome.status, bytes(outcome.body), url, change.reply)
        except (Retry, ClientError) as answered:
            if rules_it_out(answered):
                doubt.none_of(request_id)
            if isinstance(answered, Retry):
                return TryResult(change, retry=answered)
            return TryResult(change, error=self._refused(answered, request_id))
        self.in_doubt.discard(request_id)
        return TryResult(change, found)

    async def _once(
        self,
        url: str,
        method: str,
        path: str,
        reply: type[T],
        body: bytes | None,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        deadline_s: float,
        doubt: Doubt | None = None,
    ) -> T:
        """Ask `url` once. Raises Retry where another try may help, ClientError where not.

        `doubt`: about the changes in the body, if it has several; else of the headers' request id.
        """
        if self._session is None:
            raise RuntimeError("use the client in `async with`")
        if doubt is None:
            doubt = Doubt(self.in_doubt, [headers[REQUEST_ID]] if REQUEST_ID in headers else [])
        try:
            shown = self._access.authorization(url, named=url in self._named)
        except AccessError as error:
            raise Retry(ClientError("TOKEN_NOT_SENT", str(error)), hopeless=True) from None
        headers = {
            "x-logberg-client-id": self._client_id,
            "accept": "application/json",
            **({} if body is None else {"content-type": "application/json"}),
            **self._agreed.headers(url),
            **headers,
        }
        # From here on the changes may be made, until an answer or an error rules it out.
        doubt.begin()
        trail = Trail()
        try:
            async with self._session.request(
                method,
                url + path,
                params=dict(query),
                data=None if body is None else BytesIO(body),
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
            raise not_connected(url, error) from None
        except aiohttp.InvalidURL:
            doubt.none_from_this()
            wrong = ClientError("NO_ANSWER", f"{url} is not a usable URL")
            raise Retry(wrong, hopeless=True) from None
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            silent = isinstance(error, TimeoutError)
            self._agreed.forget(url)
            if not trail.sent:
                # The deadline passed before the connection was made.
                doubt.none_from_this()
            raise Retry(broken(url, error, deadline_s), silent=silent) from None
        try:
            return read_answer(status, said, url, reply)
        except (Retry, ClientError) as answered:
            if rules_it_out(answered):
                doubt.none_from_this()
            raise
