"""One request and its reply: the steps from the head to the last byte of the reply.

Rule: the steps come in this order, and a request that fails one is refused at once, whatever else
of it is still to come: the form of the head, the site it comes from, who the caller is, the target,
the size and the place of the body, the body itself, its checksum. So a body is read only from a
caller that is allowed in. The handler is called only after all of them.

A request whose bytes are there and whose handler replies at once makes no task, no timer and no
future: it costs one call from the transport to the handler and back.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final, NamedTuple

from structlog.typing import FilteringBoundLogger

from runtime.http import connection as http_connection
from runtime.http.callers import Callers
from runtime.http.connection import HttpConnection
from runtime.http.handling import Handling, Waiting
from runtime.http.limits import HttpLimits
from runtime.http.parsing import Incoming, RequestHead
from runtime.http.reading import as_request, check_form, path_and_query, with_token
from runtime.http.refusal import RefusedError, body_timed_out, throttled, too_large
from runtime.http.requests import ANONYMOUS, Caller, OnError, Reply
from runtime.http.streaming import Turns, gather, send
from runtime.http.writing import CONTINUE, LAST_CHUNK, ResponseHeads, chunk
from runtime.sockets.byte_budget import ByteBudget, ByteClaim


class Service(NamedTuple):
    """What all exchanges of one server share."""

    check_site: Callable[[RequestHead, HttpConnection], None]
    callers: Callers
    hastened: frozenset[str]
    handling: Handling
    limits: HttpLimits
    bodies: ByteBudget
    """For the bodies that are being read."""
    gathered: ByteBudget
    """For the replies that are gathered or not sent yet."""
    turns: Turns
    heads: ResponseHeads
    on_error: OnError
    counters: Counter[str]
    log: FilteringBoundLogger


class Exchange:
    """One request and its reply, on one connection."""

    __slots__ = (
        "_caller",
        "_claim",
        "_connection",
        "_hangs_up",
        "_head",
        "_incoming",
        "_keep_alive",
        "_path",
        "_query",
        "_service",
        "_task",
        "_waiting",
        "awaits_body",
    )

    def __init__(self, service: Service, connection: HttpConnection, incoming: Incoming) -> None:
        self._service = service
        self._connection: HttpConnection | None = connection
        self._incoming = incoming
        self._head: RequestHead | None = incoming.head
        self._caller = ANONYMOUS
        self._path = ""
        self._query: Mapping[str, str] = {}
        self._claim: ByteClaim | None = None
        """The memory of the body that arrives, or of the reply that is not sent yet."""
        self._waiting: Waiting | None = None
        self._task: asyncio.Task[None] | None = None
        self._keep_alive = False
        self._hangs_up = False
        """Close after the reply without reading the rest of the body."""
        self.awaits_body = False

    # -- from the head to the handler ----------------------------------------------------------

    def begin(self) -> None:
        """Start on the request. Never raises."""
        try:
            self._check_head()
        except RefusedError as refused:
            self._refuse(refused)
        except Exception:  # noqa: BLE001 - one request must not end the process
            self._fail()

    def _check_head(self) -> None:
        """Take the steps up to the body. Raises RefusedError."""
        service, connection, incoming = self._service, self._connection, self._incoming
        head = self._head
        assert connection is not None
        if head is None:
            assert incoming.refused is not None
            raise incoming.refused
        service.counters["requests"] += 1
        check_form(head)
        service.check_site(head, connection)
        caller = service.callers.caller_of(head, incoming, connection)
        if isinstance(caller, Reply):
            self._reply(caller)
            return
        if head.path in service.hastened:
            connection.hasten()
        self._caller = caller
        self._path, self._query = path_and_query(head.target)
        if incoming.complete:
            # The usual case: a small body arrived with its head.
            self._ask(head)
        else:
            self._await_body(head, caller, connection)

    def _await_body(self, head: RequestHead, caller: Caller, connection: HttpConnection) -> None:
        service = self._service
        limits = service.limits
        if head.length is not None and head.length > limits.body_bytes:
            raise too_large(limits.body_bytes)
        expects = head.headers.get("expect")
        if expects is not None and expects.lower() != "100-continue":
            raise RefusedError(
                HTTPStatus.EXPECTATION_FAILED, "INVALID_REQUEST", f"Expect: {expects[:40]}"
            )
        who = caller.principal if caller.principal != ANONYMOUS.principal else caller.address
        self._claim = service.bodies.claim(who, self._give_way)
        self.awaits_body = True
        connection.expect(limits.body_s, self._body_is_late)
        if expects is not None:
            # The client waits for permission to send its body (curl does, from 1 MiB on).
            connection.write(CONTINUE)
        self._take_more()

    def go_on(self) -> None:
        """More of the body has arrived. Never raises."""
        if self._claim is None:
            self._read_rest()
            return
        try:
            self._take_more()
        except RefusedError as refused:
            self._refuse(refused)
        except Exception:  # noqa: BLE001 - one request must not end the process
            self._fail()

    def _take_more(self) -> None:
        """Count what has arrived; ask the handler after the last byte. Raises RefusedError."""
        incoming, claim, limits = self._incoming, self._claim, self._service.limits
        assert claim is not None
        if incoming.size > limits.body_bytes:
            raise too_large(limits.body_bytes)
        if incoming.refused is not None:
            raise incoming.refused
        if not claim.grow(incoming.size - claim.held):
            raise throttled()
        if incoming.complete:
            self._stop_reading()
            assert self._head is not None
            self._ask(self._head)

    def _stop_reading(self) -> None:
        self.awaits_body = False
        claim, self._claim = self._claim, None
        if claim is not None:
            claim.close()

    def _give_way(self) -> None:
        """Another body needs the memory of this one."""
        self._refuse(throttled())

    def _body_is_late(self) -> None:
        self._refuse(body_timed_out(self._service.limits.body_s))

    def _ask(self, head: RequestHead) -> None:
        """Ask the handler. Raises RefusedError."""
        service, connection, incoming = self._service, self._connection, self._incoming
        if incoming.size > service.limits.body_bytes:
            raise too_large(service.limits.body_bytes)
        assert connection is not None
        request = as_request(head, self._path, self._query, incoming.take_body(), self._caller)
        passed = service.callers.passed_token(head)
        if passed is not None:
            request = with_token(request, passed)
        waiting = service.handling.ask(request, self._handled)
        if not waiting.is_answered:
            self._waiting = waiting
            connection.expect(service.limits.reply_s, self._handler_is_late)

    def _handled(self, reply: Reply) -> None:
        self._waiting = None
        self._reply(reply, by_server=False)

    def _handler_is_late(self) -> None:
        waiting = self._waiting
        assert waiting is not None
        waiting.leave()
        self._handled(self._service.handling.late(waiting.request))

    # -- the reply ---------------------------------------------------------------------------

    def _refuse(self, refused: RefusedError) -> None:
        """Answer for the handler; the rest of the body is not kept."""
        service = self._service
        self._stop_reading()
        self._hangs_up = refused.code in _NOT_READ_ON
        service.counters[f"refused_{refused.code}"] += 1
        self._reply(service.on_error(refused.status, refused.code, refused.message))

    def _fail(self) -> None:
        """Answer for our own code, which has just raised an exception."""
        self._stop_reading()
        head = self._head
        method, path = ("?", "?") if head is None else (head.method, head.path)
        self._reply(self._service.handling.failed(method, path))

    def _reply(self, reply: Reply, *, by_server: bool = True) -> None:
        """Send the reply. Never raises: a handler may have called us."""
        connection = self._connection
        if connection is None:
            return
        self._incoming.drop()
        try:
            if reply.status in _FOR_WHO_ASKED:
                self._service.callers.tell(self._head, connection, reply, by_server=by_server)
            if reply.parts is None:
                self._write_whole(reply, connection)
            else:
                connection.expect_nothing()
                self._task = asyncio.get_running_loop().create_task(self._send_parts(reply))
        except Exception:
            self._service.log.exception("http_handler_failed", method="?", path=self._path)
            connection.abort()

    def _may_keep_alive(self, reply: Reply, connection: HttpConnection) -> bool:
        incoming, head = self._incoming, self._head
        if (
            head is None
            or incoming.refused is not None
            or not head.keep_alive
            or connection.is_ending
        ):
            return False
        if incoming.complete:
            return True
        return not self._hangs_up and reply.status != HTTPStatus.UNAUTHORIZED

    def _connection_header(self) -> str:
        if not self._keep_alive:
            return "Connection: close\r\n"
        is_old = self._head is not None and self._head.is_old
        return "Connection: keep-alive\r\n" if is_old else ""

    def _write_whole(self, reply: Reply, connection: HttpConnection) -> None:
        service = self._service
        service.counters[f"status_{reply.status}"] += 1
        self._keep_alive = self._may_keep_alive(reply, connection)
        data = service.heads.whole(reply, self._connection_header())
        if self._head is None or self._head.method != "HEAD":
            data += reply.body
        connection.write(data)
        if connection.is_blocked:
            seconds = len(data) / http_connection.SLOWEST_BYTES_PER_S
            connection.expect(http_connection.UNREAD_S + seconds, connection.abort)
            connection.when_drained(self._sent)
        else:
            self._sent()

    def _sent(self) -> None:
        """The client has the reply, or it lies in the kernel."""
        connection = self._connection
        self._stop_reading()
        if connection is None:
            return
        connection.arrival.idle()
        incoming = self._incoming
        if incoming.complete or incoming.refused is not None or self._hangs_up:
            self._finish()
        else:
            self.awaits_body = True
            connection.expect(http_connection.LINGER_S, self._give_rest_up)

    def _read_rest(self) -> None:
        """More of a refused body has arrived."""
        if self._incoming.refused is not None:
            self._give_rest_up()
        elif self._incoming.complete:
            self._finish()

    def _give_rest_up(self) -> None:
        self._keep_alive = False
        self._finish()

    def _finish(self) -> None:
        self.awaits_body = False
        connection, self._connection = self._connection, None
        if connection is not None:
            is_broken = self._incoming.refused is not None and not self._hangs_up
            connection.finished(keep_alive=self._keep_alive, is_broken=is_broken)

    def lost(self) -> None:
        """The connection has ended."""
        self._connection = None
        self._incoming.drop()
        self._stop_reading()
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting.leave()
            self._service.counters["abandoned"] += 1
        task, self._task = self._task, None
        if task is not None:
            task.cancel()

    # -- replies in parts --------------------------------------------------------------------

    async def _send_parts(self, reply: Reply) -> None:
        """Gather a reply, and send it whole if it is short, else while it is being built."""
        service = self._service
        claim = service.gathered.claim(self._path)
        is_short = False
        try:
            reply = await gather(reply, service.turns, claim)
            connection = self._connection
            if connection is None:
                if reply.parts is not None:
                    reply.parts.close()
                return
            is_short = reply.parts is None
            if is_short:
                self._task, self._claim = None, claim
                self._write_whole(reply, connection)
            else:
                await self._send_long(reply, connection)
        except Exception:  # noqa: BLE001 - one request must not end the process
            if self._connection is not None:
                self._task = None
                self._fail()
        finally:
            if not is_short:
                claim.close()

    async def _send_long(self, reply: Reply, connection: HttpConnection) -> None:
        service, head = self._service, self._head
        assert head is not None
        service.counters[f"status_{reply.status}"] += 1
        service.counters["streamed"] += 1
        self._keep_alive = self._may_keep_alive(reply, connection) and not head.is_old
        framing = "" if head.is_old else "Transfer-Encoding: chunked\r\n"

        async def write(piece: bytes) -> None:
            connection.write(piece if head.is_old else chunk(piece))
            await _drained(connection)

        try:
            connection.write(service.heads.head(reply, self._connection_header(), framing))
            if head.method == "HEAD":
                assert reply.parts is not None
                reply.parts.close()
            else:
                await send(write, reply, service.turns, service.limits.reply_s)
                if not head.is_old:
                    connection.write(LAST_CHUNK)
        except Exception as error:  # noqa: BLE001 - the parts may raise anything
            # The status has been sent. Closing the connection is the only way left to tell the
            # client that the rest is missing.
            service.counters["broken_off"] += 1
            service.log.warning("http_reply_broken_off", path=head.path, error=repr(error))
            connection.abort()
            return
        self._task = None
        self._sent()


async def _drained(connection: HttpConnection) -> None:
    if not connection.is_blocked:
        return
    drained: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def go_on() -> None:
        if not drained.done():
            drained.set_result(None)

    connection.when_drained(go_on)
    await drained


_FOR_WHO_ASKED: Final = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}
"""Refusals because of who the caller is: these are counted and logged."""
_NOT_READ_ON: Final = {"BODY_TIMED_OUT", "THROTTLED"}
"""After these refusals the server doesn't read the rest of the body."""
