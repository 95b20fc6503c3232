"""`connect(url)`: from a URL to a client.

    async with connect("quorum+https://c1:9443,c2:9443", ttl=10) as coordinator: ...

Rule: the scheme before `+` names the backend: one of `backends/`, or an entry point of the group
`logberg.coordination`. With `class://package.module.Name?properties=/path` a class is taken, and a
file of properties are its options, as KIP-30 and its Cassandra plugin configured theirs.
"""

import importlib
import importlib.metadata
import pkgutil
import ssl as tls
from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

import javaproperties
import structlog

from coordination import backends
from coordination.backend import Auth, Backend, BackendFactory, BackendSettings
from coordination.calls import SessionCalls
from coordination.coordinator import Coordinator
from coordination.errors import ConfigError
from coordination.heartbeat_thread import ThreadedBackend
from coordination.listeners import OnError
from coordination.session import Begin, Session, SessionTimes
from runtime.asyncio_clock import of_running_loop
from runtime.clock import Clock
from runtime.randomness import Random, from_system

ENTRY_POINTS: Final = "logberg.coordination"
"""The group of entry points of other packages' backends."""
LONGEST_MARGIN_S: Final = 1.0
MARGIN_SHARE: Final = 0.1
"""The safety margin is this share of the ttl, but not more than `LONGEST_MARGIN_S`."""


@dataclass(frozen=True, slots=True)
class ParsedUrl:
    """The parts of a URL."""

    scheme: str
    endpoints: tuple[str, ...]
    path: str
    auth: Auth | None
    options: Mapping[str, str]


class Connecting:
    """What `connect` returns: `async with` it, or await it and close the client yourself."""

    def __init__(
        self,
        url: str,
        *,
        ttl_s: float,
        namespace: str,
        margin_s: float | None,
        ssl: tls.SSLContext | None,
        auth: Auth | None,
        request_timeout_s: float,
        heartbeat_thread: bool,
        on_error: OnError | None,
        clock: Clock | None,
        dice: Random | None,
        options: Mapping[str, object],
    ) -> None:
        self._url = parse_url(url, auth, options)
        self._ttl_s = positive("ttl", ttl_s)
        self._namespace = namespace
        self._margin_s = margin_s
        self._ssl = ssl
        self._request_timeout_s = positive("request_timeout", request_timeout_s)
        self._heartbeat_thread = heartbeat_thread
        if heartbeat_thread and clock is not None:
            raise ConfigError("heartbeat_thread=True runs in real time; give no clock")
        self._on_error = on_error
        self._clock = clock
        self._dice = dice
        self._log = structlog.get_logger()
        self._coordinator: Coordinator | None = None

    async def open(self) -> Coordinator:
        """Connect and begin a session. Raises ConfigError, AuthFailed, Unavailable."""
        clock = self._clock if self._clock is not None else of_running_loop()
        dice = self._dice if self._dice is not None else from_system()
        settings = BackendSettings(
            scheme=self._url.scheme,
            endpoints=self._url.endpoints,
            path=self._url.path,
            request_timeout_s=self._request_timeout_s,
            clock=clock,
            dice=dice,
            ssl=self._ssl,
            auth=self._url.auth,
            options=self._url.options,
        )
        factory, settings = find_factory(self._url), read_properties(settings)
        backend: Backend
        begin: Begin | None = None
        if self._heartbeat_thread:
            backend = threaded = ThreadedBackend.start(factory, settings)
            begin = threaded.begin
        else:
            backend = factory(settings)

        async def open_session() -> Session:
            return await self._open_session(backend, clock, begin)

        try:
            await backend.open()
            session = await open_session()
        except BaseException:
            await backend.aclose()
            raise
        calls = SessionCalls(
            backend,
            session,
            self._namespace,
            clock,
            dice,
            self._request_timeout_s,
            self._log,
        )
        return Coordinator(calls, open_session, self._on_error)

    async def _open_session(self, backend: Backend, clock: Clock, begin: Begin | None) -> Session:
        offered = backend.capabilities
        ttl_s = min(max(self._ttl_s, offered.min_ttl_s), offered.max_ttl_s)
        if ttl_s != self._ttl_s:
            self._log.warning("coordination_ttl_clamped", asked_s=self._ttl_s, ttl_s=ttl_s)
        sent_s = clock.monotonic()
        opened = await backend.open_session(ttl_s)
        margin_s = self._margin_s
        if margin_s is None:
            margin_s = min(LONGEST_MARGIN_S, MARGIN_SHARE * opened.ttl_s) + offered.clock_skew_s
        if not 0 <= margin_s < opened.ttl_s:
            await backend.end_session(opened.id)
            raise ConfigError(
                f"safety_margin is {margin_s} s; it must be less than the ttl of {opened.ttl_s} s"
            )
        return Session(backend, opened, sent_s, SessionTimes(margin_s), clock, self._log, begin)

    def __await__(self) -> Generator[Any, None, Coordinator]:
        return self.open().__await__()

    async def __aenter__(self) -> Coordinator:
        self._coordinator = await self.open()
        return self._coordinator

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._coordinator is not None:
            await self._coordinator.aclose()


def connect(
    url: str,
    /,
    *,
    ttl: float = 10.0,
    namespace: str = "",
    safety_margin: float | None = None,
    ssl: tls.SSLContext | None = None,
    auth: Auth | None = None,
    request_timeout: float = 5.0,
    heartbeat_thread: bool = False,
    on_listener_error: OnError | None = None,
    clock: Clock | None = None,
    dice: Random | None = None,
    **backend_options: object,
) -> Connecting:
    """Return a client of the store that the URL names, to `async with` or to await.

    `ttl`: seconds after which the store ends a silent session; the store may grant another one,
    which `session.ttl` says. `namespace`: goes before every key and name. `safety_margin`: how many
    seconds before the store the client gives its session up; None takes a tenth of the ttl, at
    most 1 s, and what the store's clocks may differ. `request_timeout`: seconds for each request.
    `heartbeat_thread`: send heartbeats from a thread, so that a loop which computes for longer than
    the ttl keeps its session, and also one that hangs.
    `on_listener_error` gets the exceptions of listeners. `clock`, `dice`: for simulations.

    Raises ConfigError at once for a wrong URL or setting, ConfigError, AuthFailed and Unavailable
    when the connection is made.
    """
    return Connecting(
        url,
        ttl_s=ttl,
        namespace=namespace,
        margin_s=safety_margin,
        ssl=ssl,
        auth=auth,
        request_timeout_s=request_timeout,
        heartbeat_thread=heartbeat_thread,
        on_error=on_listener_error,
        clock=clock,
        dice=dice,
        options=backend_options,
    )


def positive(name: str, value: float) -> float:
    """Return a number of seconds. Raises ConfigError."""
    if not value > 0:
        raise ConfigError(f"{name} is {value}; it must be more than 0 seconds")
    return value


def parse_url(url: str, auth: Auth | None, options: Mapping[str, object]) -> ParsedUrl:
    """Take a URL apart; hosts are separated by commas. Raises ConfigError."""
    try:
        parts = urlsplit(url)
        query = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError as error:
        raise ConfigError(f"the URL can't be read: {error}") from error
    if not parts.scheme or "://" not in url:
        raise ConfigError("a URL begins with scheme://, such as quorum+http://host:port")
    if parts.fragment:
        raise ConfigError("a URL of a store has no #fragment; write # in a password as %23")
    user, at, hosts = parts.netloc.rpartition("@")
    endpoints = tuple(hosts.split(",")) if hosts else ()
    if not all(endpoints):
        raise ConfigError(f"there is an empty host in {hosts!r}")
    names = [name for name, _ in query]
    doubled = {name for name in names if names.count(name) > 1} | (set(names) & options.keys())
    if doubled:
        raise ConfigError(f"an option stands twice: {', '.join(sorted(doubled))}")
    if at and auth is None:
        name, _, password = user.partition(":")
        auth = Auth(unquote(name), unquote(password))
    given = {name: str(value) for name, value in options.items()}
    return ParsedUrl(
        parts.scheme, endpoints, unquote(parts.path.removeprefix("/")), auth, dict(query) | given
    )


def find_factory(url: ParsedUrl) -> BackendFactory:
    """Return what makes a scheme's backend. Raises ConfigError."""
    name = url.scheme.partition("+")[0]
    if name == "class":
        return load_class(url.endpoints[0] if url.endpoints else "")
    own = {module.name for module in pkgutil.iter_modules(backends.__path__)}
    if name in own:
        module = importlib.import_module(f"{backends.__name__}.{name}")
        factory: BackendFactory = module.make_backend
        return factory
    found = importlib.metadata.entry_points(group=ENTRY_POINTS, name=url.scheme) or (
        importlib.metadata.entry_points(group=ENTRY_POINTS, name=name)
    )
    for entry_point in found:
        loaded: BackendFactory = entry_point.load()
        return loaded
    others = {point.name for point in importlib.metadata.entry_points(group=ENTRY_POINTS)}
    raise ConfigError(
        f"no backend has the scheme {url.scheme!r}; known ones: {', '.join(sorted(own | others))}"
    )


def load_class(dotted: str) -> BackendFactory:
    """Return a class, or a function, by its module and name. Raises ConfigError."""
    module, _, name = dotted.rpartition(".")
    try:
        factory: BackendFactory = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"the class {dotted!r} can't be loaded: {error}") from error
    return factory


def read_properties(settings: BackendSettings) -> BackendSettings:
    """Take options from the file that the option `properties` of `class://` names.

    Raises ConfigError.
    """
    if settings.scheme != "class" or "properties" not in settings.options:
        return settings
    options = dict(settings.options)
    path = Path(options.pop("properties"))
    try:
        read = javaproperties.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"the properties can't be read: {error}") from error
    return replace(settings, options=read | options)
