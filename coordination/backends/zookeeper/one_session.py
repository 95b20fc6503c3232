"""A kazoo client that has one session and never another, without threads of its own but one.

Rule: when ZooKeeper says that the session has expired, or gives another one on a reconnect (as
other servers of its protocol may), the client is over. kazoo itself would go on with a new session,
and what was waiting to be sent would be done in the new session's name.

kazoo's handler is the place where it takes its sockets and threads from. Ours calls back on the
thread that reads the socket, so replies and watch events keep ZooKeeper's order.
"""

import ssl as tls
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionDropped
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.connection import ConnectionHandler
from kazoo.retry import KazooRetry

_SHUT_BOTH = 2


class SocketHandler(SequentialThreadingHandler):
    """Sockets with TLS and a short time to connect; callbacks without a queue."""

    def __init__(self, connect_s: float, ssl: tls.SSLContext | None) -> None:
        super().__init__()
        self._connect_s = connect_s
        self._ssl = ssl
        self._socket: Any = None

    @property
    def running(self) -> bool:
        """Never: so kazoo calls back at once, on the thread that read the reply."""
        return False

    def start(self) -> None:
        """There are no workers to start."""

    def stop(self) -> None:
        """There are no workers to stop."""

    def dispatch_callback(self, callback: Any) -> None:
        callback.func(*callback.args)

    def create_connection(
        self, address: tuple[str, int], hostname: str | None = None, **_: object
    ) -> Any:
        """Connect; kazoo's own time to connect is the whole session's."""
        made = super().create_connection(address, hostname=hostname, timeout=self._connect_s)
        if self._ssl is not None:
            made = self._ssl.wrap_socket(made, server_hostname=hostname)
        self._socket = made
        return made

    def drop(self) -> None:
        """End the connection, so that kazoo makes another one, to the next server."""
        try:
            self._socket.shutdown(_SHUT_BOTH)
        except (OSError, AttributeError):
            return


class _OneSessionConnection(ConnectionHandler):
    """kazoo's connection, which reports each new connection and makes no second session."""

    def __init__(self, client: KazooClient, retry: KazooRetry, sasl: dict[str, str] | None) -> None:
        super().__init__(client, retry, logger=client.logger, sasl_options=sasl)
        self.connected: Callable[[int, float], bool] = lambda _id, _ttl: True
        self.over = False
        self.pings = True

    def _send_ping(self, connect_timeout: float) -> None:
        """Not for a session whose owner sends heartbeats.

        kazoo's thread would keep it alive while the owner's loop stands still.
        """
        if self.pings:
            super()._send_ping(connect_timeout)

    def _connect(self, host: str, hostip: str, port: int) -> tuple[float, float]:
        if self.over:
            raise ConnectionDropped("the session is over")
        timeouts: tuple[float, float] = super()._connect(host, hostip, port)
        session, _ = self.client.client_id
        # kazoo reads for two thirds of the time that ZooKeeper granted.
        if not self.connected(session, timeouts[0] * 1.5 / 1000):
            self.over = True
            raise ConnectionDropped("ZooKeeper gave another session")
        return timeouts


def one_session_client(
    hosts: str,
    ttl_s: float,
    handler: SocketHandler,
    *,
    digest: str | None,
    sasl: dict[str, str] | None,
    acl: list[Any] | None,
    pings: bool,
    connected: Callable[[int, float], bool],
) -> KazooClient:
    """Make a client that isn't started yet.

    It calls `connected` from its own thread after each connect, with the session and the granted
    seconds. The session ends when that returns False.
    """
    retry = KazooRetry(max_tries=-1, delay=0.05, max_delay=0.5, sleep_func=handler.sleep_func)
    client = KazooClient(
        hosts=hosts,
        timeout=ttl_s,
        handler=handler,
        connection_retry=retry,
        auth_data={("digest", digest)} if digest else None,
        default_acl=acl,
        randomize_hosts=False,
    )
    connection = _OneSessionConnection(client, client._conn_retry.copy(), sasl)  # noqa: SLF001 - kazoo has no door for it
    connection.connected = connected
    connection.pings = pings
    client._connection = connection  # noqa: SLF001 - as above
    return client


@dataclass(frozen=True, slots=True)
class RemoveWatches:
    """A request that kazoo hasn't: the server forgets the watches of this connection on a node."""

    path: str
    kind: int
    """1: of the children; 2: of the node."""

    type: ClassVar[int] = 18

    def serialize(self) -> bytes:
        """As ZooKeeper's RemoveWatchesRequest."""
        path = self.path.encode()
        return struct.pack(">i", len(path)) + path + struct.pack(">i", self.kind)

    def deserialize(self, _data: bytes, _offset: int) -> None:
        """The reply is empty."""


def remove_watches(client: KazooClient, request: RemoveWatches) -> Any:
    """Begin the request. What waits for the watches is not called any more."""
    watchers = client._child_watchers if request.kind == 1 else client._data_watchers  # noqa: SLF001 - as below
    watchers.pop(request.path, None)
    result = client.handler.async_result()
    client._call(request, result)  # noqa: SLF001 - kazoo has no door for requests of others
    return result


def forbid_another_session(client: KazooClient) -> None:
    """The session is over; the client shall not begin another one."""
    client._connection.over = True  # noqa: SLF001 - as above
