"""Cassandra's driver for asyncio: a future for each statement, our errors, nothing sent twice.

Rule: the driver's own retries are off. A write whose reply is lost raises `ReplyLost`; its caller
finds out what came of it. A read is repeated until its time is over.

The driver calls back on its own thread, once for each page; the loop gets a result once.
"""

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

from cassandra import (
    AuthenticationFailed,
    ConsistencyLevel,
    InvalidRequest,
    OperationTimedOut,
    ProtocolVersion,
    ReadFailure,
    ReadTimeout,
    Unauthorized,
    WriteFailure,
    WriteTimeout,
)
from cassandra import Unavailable as TooFewReplicas
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import (
    EXEC_PROFILE_DEFAULT,
    Cluster,
    ExecutionProfile,
    NoHostAvailable,
    Session,
)
from cassandra.connection import ConnectionException
from cassandra.policies import (
    ConstantReconnectionPolicy,
    FallthroughRetryPolicy,
    RoundRobinPolicy,
    TokenAwarePolicy,
)
from cassandra.protocol import OverloadedErrorMessage, ServerError
from cassandra.query import BatchStatement, BatchType

from coordination.backend import BackendSettings
from coordination.backends.cassandra.schema import KEYSPACE, SESSIONS, SPACES, STATEMENTS
from coordination.errors import AuthFailed, ConfigError, CoordinationError, Unavailable
from coordination.until import ReplyLost, Until

_LOST: Final = (
    ConnectionException,
    OperationTimedOut,
    WriteTimeout,
    ReadTimeout,
    WriteFailure,
    ReadFailure,
    ServerError,
    NoHostAvailable,
)
_NOT_DONE: Final = (TooFewReplicas, OverloadedErrorMessage)
_DEFAULT_PORT: Final = 9042
_CONNECT_S: Final = 2.0
Bound = tuple[str, Sequence[object]]
"""A statement of `schema` by its name, and its values."""


class CassandraLink:
    """The driver's session. Make it in the loop that uses it."""

    def __init__(
        self,
        settings: BackendSettings,
        keyspace: str,
        replicas: int | None,
        *,
        creates: bool = True,
    ) -> None:
        """`creates`: make the keyspace and its tables if they aren't there."""
        self._settings = settings
        self._creates = creates
        self._keyspace = keyspace
        self._replicas = replicas
        self._loop = asyncio.get_running_loop()
        self._attempt_s = settings.request_timeout_s / 2
        self._cluster = self._make_cluster()
        self._session: Session | None = None
        self._given_up = False
        self._prepared: dict[str, Any] = {}

    async def open(self, until: Until) -> None:
        """Connect, and make the tables if they aren't there.

        Raises AuthFailed, Unavailable; ConfigError, if there are no tables to read.
        """
        try:
            async with asyncio.timeout(until.left_s):
                await self._in_thread(self._connect)
        except TimeoutError:
            self._given_up = True
            self.close_soon()
            raise Unavailable("Cassandra didn't answer in time") from None
        except NoHostAvailable as error:
            self.close_soon()
            # With a list the driver tells of hosts alone.
            reasons = error.errors.values() if isinstance(error.errors, dict) else ()
            if any(isinstance(reason, AuthenticationFailed) for reason in reasons):
                raise AuthFailed(f"Cassandra refuses the credentials: {error}") from None
            raise Unavailable(f"no node of Cassandra answered: {error}") from None
        except Unauthorized as error:
            self.close_soon()
            raise AuthFailed(f"Cassandra refuses it: {error}") from None
        except ConfigError:
            self.close_soon()
            raise
        except InvalidRequest as error:
            self.close_soon()
            raise ConfigError(f"Cassandra refuses the keyspace or a table: {error}") from None

    async def close(self, until: Until) -> None:
        closing = asyncio.ensure_future(self._in_thread(self._cluster.shutdown))
        await asyncio.wait([closing], timeout=until.left_s)

    def close_soon(self) -> None:
        """Close in the background: the driver may still wait for a node that doesn't answer."""
        asyncio.ensure_future(self._in_thread(self._cluster.shutdown)).add_done_callback(
            lambda done: done.cancelled() or done.exception()
        )

    async def read(
        self, name: str, values: Sequence[object], until: Until, *, serial: bool
    ) -> list[Any]:
        """All rows. A serial read sees all transactions, and finishes those that are half made."""
        level = ConsistencyLevel.SERIAL if serial else ConsistencyLevel.QUORUM
        while True:
            statement = self._prepared[name].bind(values)
            statement.consistency_level = level
            try:
                return await self._ask(statement, until)
            except ReplyLost:
                until.check()

    async def write(self, bounds: Sequence[Bound], until: Until) -> dict[str, Any] | None:
        """Make one transaction, of one partition. None: it was made; else what stands against it.

        Raises ReplyLost.
        """
        if len(bounds) == 1:
            statement = self._prepared[bounds[0][0]].bind(bounds[0][1])
        else:
            statement = BatchStatement(BatchType.LOGGED)
            for name, values in bounds:
                statement.add(self._prepared[name].bind(values))
        statement.consistency_level = ConsistencyLevel.QUORUM
        statement.serial_consistency_level = ConsistencyLevel.SERIAL
        try:
            rows = await self._ask(statement, until)
        except ReplyLost:
            until.lost = True
            raise
        row: dict[str, Any] = rows[0]
        return None if row["[applied]"] else row

    async def _ask(self, statement: Any, until: Until) -> list[Any]:
        if self._session is None:
            raise Unavailable("the backend isn't open")
        until.check()
        future: asyncio.Future[list[Any]] = self._loop.create_future()
        limit = min(self._attempt_s, until.left_s)
        try:
            asked = self._session.execute_async(statement, timeout=limit)
        except NoHostAvailable as error:
            await asyncio.sleep(min(0.1, until.left_s))
            raise Unavailable(f"no node of Cassandra answered: {error}") from None
        asked.add_callbacks(
            _Pages(self._loop, future, asked).take,
            lambda error: _from_thread(self._loop, lambda: _fail(future, error)),
        )
        try:
            async with asyncio.timeout(limit + 0.5):
                return await future
        except (TimeoutError, *_LOST):
            raise ReplyLost from None
        except _NOT_DONE as error:
            raise Unavailable(f"Cassandra can't decide now: {error}") from None
        except Unauthorized as error:
            raise AuthFailed(f"Cassandra refuses it: {error}") from None
        except CoordinationError:
            raise

    def _make_cluster(self) -> Cluster:
        settings = self._settings
        auth = settings.auth
        profile = ExecutionProfile(
            load_balancing_policy=TokenAwarePolicy(RoundRobinPolicy()),
            retry_policy=FallthroughRetryPolicy(),
            row_factory=_as_dicts,
            request_timeout=self._attempt_s,
        )
        return Cluster(
            contact_points=[_host_and_port(endpoint) for endpoint in settings.endpoints],
            port=_host_and_port(settings.endpoints[0])[1],
            auth_provider=PlainTextAuthProvider(auth.username, auth.password) if auth else None,
            ssl_context=settings.ssl,
            protocol_version=ProtocolVersion.V5,
            execution_profiles={EXEC_PROFILE_DEFAULT: profile},
            reconnection_policy=ConstantReconnectionPolicy(0.2, None),
            # A node that is busy takes its time to check a password. The driver sometimes doesn't
            # see that a connection was reset, and tries again only after this.
            connect_timeout=min(_CONNECT_S, self._attempt_s),
            # The driver prepares again what a node doesn't know; asking for all takes seconds.
            reprepare_on_up=False,
            control_connection_timeout=self._attempt_s,
            idle_heartbeat_interval=self._attempt_s,
            idle_heartbeat_timeout=self._attempt_s,
        )

    def _connect(self) -> None:
        """Runs in a thread: the driver's own waiting."""
        session = self._connected()
        known = self._cluster.metadata.keyspaces.get(self._keyspace)
        if not self._creates and (known is None or "spaces" not in known.tables):
            raise ConfigError(f"there is no keyspace {self._keyspace!r} of this library's")
        if known is None:
            replicas = self._replicas or min(3, len(self._cluster.metadata.all_hosts()))
            session.execute(KEYSPACE.format(keyspace=self._keyspace, replicas=replicas))
        for name, table in (("spaces", SPACES), ("sessions", SESSIONS)):
            if known is None or name not in known.tables:
                session.execute(table.format(keyspace=self._keyspace))
        for name, text in STATEMENTS.items():
            self._prepared[name] = session.prepare(text.format(keyspace=self._keyspace))
        self._session = session

    def _connected(self) -> Session:
        """Try until `open` gives up, unless the credentials are refused."""
        while True:
            try:
                return self._cluster.connect()
            except NoHostAvailable as error:
                reasons = error.errors.values() if isinstance(error.errors, dict) else ()
                slow = any(isinstance(reason, OperationTimedOut) for reason in reasons)
                if self._given_up or not (slow or isinstance(error.errors, list)):
                    raise
                self._cluster.shutdown()
                self._cluster = self._make_cluster()

    async def _in_thread(self, work: Callable[[], object]) -> None:
        """As asyncio.to_thread, in a thread for which nobody waits at the loop's end."""
        future: asyncio.Future[None] = self._loop.create_future()

        def run() -> None:
            error = None
            try:
                work()
            except Exception as raised:  # noqa: BLE001 - handed over
                error = raised
            _from_thread(self._loop, lambda: _fail(future, error) if error else _settle(future))

        threading.Thread(target=run, name="cassandra-connect", daemon=True).start()
        await future


class _Pages:
    """Collects the pages of one answer."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, future: "asyncio.Future[list[Any]]", asked: Any
    ) -> None:
        self._loop = loop
        self._future = future
        self._asked = asked
        self._rows: list[Any] = []

    def take(self, rows: Any) -> None:
        """Called by the driver's thread, once for each page."""
        self._rows.extend(rows or ())
        if self._asked.has_more_pages:
            self._asked.start_fetching_next_page()
        else:
            _from_thread(self._loop, self._settle)

    def _settle(self) -> None:
        if not self._future.done():
            self._future.set_result(self._rows)


def _as_dicts(names: Sequence[str], rows: Sequence[Sequence[object]]) -> list[dict[str, object]]:
    """With Cassandra's own names, `[applied]` among them."""
    return [dict(zip(names, row, strict=True)) for row in rows]


def _from_thread(loop: asyncio.AbstractEventLoop, call: Callable[[], object]) -> None:
    try:
        loop.call_soon_threadsafe(call)
    except RuntimeError:  # the loop is closed: nobody waits any more
        return


def _fail(future: "asyncio.Future[Any]", error: Exception) -> None:
    if not future.done():
        future.set_exception(error)


def _settle(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


def _host_and_port(endpoint: str) -> tuple[str, int]:
    host, colon, port = endpoint.rpartition(":")
    if not colon or not port.isdigit():
        return endpoint.strip("[]"), _DEFAULT_PORT
    return host.strip("[]"), int(port)
