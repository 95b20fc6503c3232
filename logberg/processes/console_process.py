"""Serves the console over HTTP until it is stopped.

Rule: one thread keeps the index up, and a few answer requests, so a long question holds up nobody.
Whoever calls from another machine must show the token. On loopback, too, if there is one. The files
of the page are open, because a browser asks for them before anybody can type a token.
"""

import asyncio
import hmac
import signal
import ssl
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from hashlib import sha256
from typing import Final

from structlog.typing import FilteringBoundLogger

from audit.console.console import Console
from audit.console.page_files import PAGE_FILES
from logberg.processes.principals import error_answer, refuse
from runtime.http.requests import ANONYMOUS, Caller, Reply, Request
from runtime.http.server import HttpServer
from runtime.sockets.credentials import PeerCertificate, ShownToken

_ANSWERERS: Final = 3
_LOOK_S: Final = 0.5
"""How often the console looks for new records."""
_WAITING_MAX: Final = 64
"""Requests that wait for an answer. Further ones are refused."""


class ConsoleAccess:
    """Judges who may ask the console."""

    def __init__(self, token: str | None) -> None:
        """`token` None: everybody who can reach the address may."""
        self._digest = None if token is None else sha256(token.encode()).digest()

    @property
    def open_paths(self) -> frozenset[str] | None:
        """The paths for callers without a token; None: all."""
        return None if self._digest is None else frozenset(PAGE_FILES)

    def authenticate(
        self,
        certificate: PeerCertificate | None,
        token: ShownToken | None,
        uid: int | None,
        address: str,
    ) -> Caller | Reply:
        """Return who calls, or the reply that refuses it."""
        if token is None or self._digest is None:
            return Caller(ANONYMOUS.principal, ANONYMOUS.method, address)
        if hmac.compare_digest(self._digest, token.digest):
            return Caller("User:console", "token", address)
        return refuse("this is not the console's token")


class ConsoleServer:
    """One console at one address."""

    def __init__(
        self,
        console: Console,
        host: str,
        port: int,
        *,
        access: ConsoleAccess,
        log: FilteringBoundLogger,
        tls: ssl.SSLContext | None = None,
        insecure_network: bool = False,
        names: tuple[str, ...] = (),
    ) -> None:
        """`names`: further names of this host that a browser may use."""
        self._console = console
        self._host, self._port = host, port
        self._access, self._log = access, log
        self._tls, self._insecure_network = tls, insecure_network
        self._names = names
        self._stopping = threading.Event()
        self._waiting = 0

    def run(self, on_ready: Callable[[int], None]) -> None:
        """Serve until SIGINT or SIGTERM. `on_ready` gets the port.

        Raises InsecureListenerError, OSError.
        """
        asyncio.run(self._serve(on_ready))

    async def _serve(self, on_ready: Callable[[int], None]) -> None:
        loop, stopped = asyncio.get_running_loop(), asyncio.Event()
        server = self._server(loop)
        server.start()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stopped.set)
        keeper = threading.Thread(target=self._keep_up, name="index")
        keeper.start()
        try:
            on_ready(server.port)
            await stopped.wait()
        finally:
            self._stopping.set()
            await server.stop()
            await asyncio.to_thread(keeper.join, 5.0)

    def _keep_up(self) -> None:
        try:
            self._console.keep_up(lambda: not self._stopping.wait(_LOOK_S))
        except Exception:  # noqa: BLE001 - a defect must not end without a word
            self._log.exception("console_index_failed")

    def _server(self, loop: asyncio.AbstractEventLoop) -> HttpServer:
        threads = ThreadPoolExecutor(_ANSWERERS, "answer")

        def handle(request: Request, reply: Callable[[Reply], None]) -> None:
            if self._waiting >= _WAITING_MAX:
                reply(error_answer(503, "THROTTLED", "too many questions at once: ask again"))
                return
            self._waiting += 1
            future = loop.run_in_executor(threads, self._console.answer, request)
            future.add_done_callback(partial(self._answered, request, reply))

        return HttpServer(
            handle,
            self._host,
            self._port,
            authenticate=self._access.authenticate,
            on_error=error_answer,
            log=self._log,
            tls=self._tls,
            insecure_network=self._insecure_network,
            allowed_hosts=self._names,
            anonymous_paths=self._access.open_paths,
        )

    def _answered(
        self, request: Request, reply: Callable[[Reply], None], done: "asyncio.Future[Reply]"
    ) -> None:
        self._waiting -= 1
        error = done.exception()
        if error is None:
            reply(done.result())
            return
        self._log.error("console_answer_failed", path=request.path, exc_info=error)
        reply(
            error_answer(500, "UNKNOWN_SERVER_ERROR", "a defect of the console: its log says more")
        )
