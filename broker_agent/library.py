"""The agent inside an asyncio program.

    async with BrokerAgent(config, data=Path("broker-1")) as agent:
        await agent.wait_online()
        ... ask agent.may_serve() before each answer, read agent.image ...

Rule: leaving the block is a controlled shutdown: the controller moves the leaders to other brokers
first. If the controller refuses the broker for good, `wait_gone` returns and the program must end:
only a new process may register again.
"""

import asyncio
import contextlib
import ssl
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

import structlog

from broker_agent.agent import AgentCore
from broker_agent.api import AgentApi
from broker_agent.config import AgentConfig, problems
from broker_agent.directory_assignments import DirectoryAssignments
from broker_agent.health import Health, health_of
from broker_agent.host_api import HostApi
from broker_agent.isr_requests import IsrRequests
from broker_agent.isr_without_data import IsrWithoutData
from broker_agent.opened_secrets import Secrets
from broker_agent.own_server import OwnListeners, OwnServer
from broker_agent.people import AgentPeople
from broker_agent.producer_ids import ProducerIds
from broker_agent.publishers import Duties, PartitionDuties, Publisher
from broker_agent.states import BrokerState
from broker_agent.subject_keys import AgentSubjectKeys
from metadata.bucket_hash import SECRET_BYTES, key_buckets
from metadata.image import MetadataImage
from metadata.partition_key import PartitionKey
from metadata.sealing import ClusterKey
from runtime import asyncio_clock
from runtime.disk.real import RealDisk
from runtime.http.client import HttpRequester
from runtime.http.requests import Reply, Request
from runtime.randomness import from_system
from runtime.sockets.peer_proof import ControllerProof


class Ending(NamedTuple):
    """How an agent ended."""

    reason: str
    orderly: bool
    """False: a controller refused the broker for good, or a limit of the shutdown passed."""


class AgentGoneError(Exception):
    """The agent has ended; the message says why."""


class BrokerAgent:
    """One broker's agent. Use an object for one `async with` block only."""

    def __init__(
        self,
        config: AgentConfig,
        *,
        data: Path,
        tls: ssl.SSLContext | None = None,
        token: str | None = None,
        publishers: tuple[Publisher, ...] = (),
        duties: Duties | None = None,
        on_isr: Callable[[PartitionKey], None] | None = None,
        holds_no_data: bool = False,
        cluster_key: ClusterKey | None = None,
        server: OwnServer | None = None,
        log: structlog.typing.FilteringBoundLogger | None = None,
    ) -> None:
        """Prepare an agent; `async with` starts it.

        `data` is the agent's folder. `tls` is the client context for connections to controllers;
        the agent adds the check that the server is a controller of this cluster, so that no request
        and no `token` reaches another server. `token` is a bearer token. The agent calls the
        publishers in their order, and `duties` after them. It calls `on_isr` when a controller has
        answered a change that `isr` asked for. `holds_no_data`: put every online replica into
        the ISRs of partitions that this broker leads. `cluster_key`: that of the controllers; with
        it `secrets` opens credentials and passwords, and people who have pseudonyms can be judged
        by entries here. `server`: also listen for HTTP. Raises ValueError for an invalid
        configuration, and for a `token` without TLS.
        """
        if found := problems(config):
            raise ValueError(" ".join(found))
        if token is not None and (tls is None or not _all_https(config)):
            raise ValueError(
                "token: the agent would send it over plain HTTP, or to a server that has not "
                "proved that it is a controller; give `tls`, and name the controllers by https://"
            )
        self._config = config
        self._data = data
        self._proof = ControllerProof(config.cluster_id)
        if tls is not None:
            self._proof.demand(tls)
        self._tls = tls
        self._token = token
        self._publishers = publishers
        if duties is not None:
            self._publishers += (PartitionDuties(config.broker_id, duties),)
        self._own_server = server
        # A copy: the keys of subjects that this agent fetches end with it.
        self._cluster_key = None if cluster_key is None else cluster_key.copy()
        self._secrets = Secrets(lambda: self.image, self._cluster_key)
        self._on_isr = on_isr
        self._holds_no_data = holds_no_data
        self._isr: IsrRequests | None = None
        self._people: AgentPeople | None = None
        self._producer_ids: ProducerIds | None = None
        self._directories: DirectoryAssignments | None = None
        self._host_api: HostApi | None = None
        self._log = log if log is not None else structlog.get_logger()
        self._changed = asyncio.Event()
        self._ending: Ending | None = None
        self._core: AgentCore | None = None
        self._api: AgentApi | None = None
        self._listeners: OwnListeners | None = None
        self._requester: HttpRequester | None = None
        self._cleanup = contextlib.AsyncExitStack()

    async def __aenter__(self) -> "BrokerAgent":
        """Start. Raises OSError, FolderInUseError, WrongFolderError, InsecureListenerError."""
        async with contextlib.AsyncExitStack() as stack:
            clock, random = asyncio_clock.of_running_loop(), from_system()
            key_buckets(random.randbytes(SECRET_BYTES))
            disk = RealDisk(self._data, clock)
            stack.callback(disk.close)
            self._requester = HttpRequester(log=self._log, tls=self._tls, token=self._token)
            stack.push_async_callback(self._requester.close)
            self._isr = isr = IsrRequests(
                self._config.broker_id,
                clock=clock,
                requester=self._requester,
                on_change=self._on_isr or _ignore,
                log=self._log,
            )
            self._producer_ids = producer_ids = ProducerIds(
                self._config.broker_id,
                clock=clock,
                requester=self._requester,
                on_ready=self._on_producer_ids,
                log=self._log,
            )
            self._directories = directories = DirectoryAssignments(
                self._config.broker_id,
                self._config.log_dirs,
                clock=clock,
                requester=self._requester,
                log=self._log,
            )
            self._people = people = AgentPeople(
                self._cluster_key, self._config.super_users, clock, lambda: self.image
            )
            own_publishers: tuple[Publisher, ...] = (people, isr, producer_ids, directories)
            keys: tuple[AgentSubjectKeys, ...] = ()
            if self._cluster_key is not None:
                keys = (
                    AgentSubjectKeys(
                        self._cluster_key,
                        clock=clock,
                        requester=self._requester,
                        log=self._log,
                        on_keys=people.look,
                    ),
                )
                own_publishers = (*keys, *own_publishers)
            if self._holds_no_data:
                own_publishers += (IsrWithoutData(self._config.broker_id, isr),)
            self._core = core = AgentCore(
                self._config,
                clock=clock,
                random=random,
                disk=disk,
                requester=self._requester,
                host=self,
                publishers=(*own_publishers, *self._publishers),
                log=self._log,
            )
            stack.callback(core.abandon)
            for requests in (isr, producer_ids, directories):
                requests.follow(core)
                stack.callback(requests.end)
            for fetched in keys:
                fetched.follow(core)
                stack.callback(fetched.end)
            stack.callback(people.end)
            if self._own_server is not None:
                own = self._own_server
                if own.host_socket is not None:
                    self._host_api = HostApi(
                        core,
                        clock=clock,
                        producer_ids=producer_ids,
                        directories=directories,
                        secrets=self._secrets,
                    )
                self._api = api = AgentApi(
                    core,
                    self._requester,
                    clock=clock,
                    random=random,
                    people=people,
                    forward_anonymous=own.forward_anonymous,
                    # Without a token, only a certificate proves to the controllers who this is.
                    shows_certificate=self._tls is not None and self._token is None,
                    host=self._host_api,
                )
                self._listeners = listeners = OwnListeners(
                    own, core, api, self._secrets, people, clock=clock, random=random, log=self._log
                )
                stack.push_async_callback(listeners.stop)
                listeners.start()
            core.start()
            self._cleanup = stack.pop_all()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            await self.stop()
        finally:
            await self._cleanup.aclose()

    @property
    def core(self) -> AgentCore:
        """The agent's core; only inside `async with`."""
        assert self._core is not None, "use the agent inside `async with`"
        return self._core

    @property
    def isr(self) -> IsrRequests:
        """The in-sync replicas of the partitions that this broker leads."""
        assert self._isr is not None, "use the agent inside `async with`"
        return self._isr

    @property
    def directories(self) -> DirectoryAssignments:
        """The reports in which log directories this broker's replicas lie."""
        assert self._directories is not None, "use the agent inside `async with`"
        return self._directories

    @property
    def secrets(self) -> Secrets:
        """Opens SCRAM credentials, delegation tokens and passwords in configs."""
        return self._secrets

    @property
    def people(self) -> AgentPeople:
        """Says by which principal to judge a client, for hosts that read `image.acls`."""
        assert self._people is not None, "use the agent inside `async with`"
        return self._people

    async def next_producer_id(self) -> int:
        """Return an id that no producer of the cluster has had, nor will have (KIP-730).

        It waits for a controller if the last block is used up, so set a limit with
        `asyncio.timeout`. Raises AgentGoneError once the agent has ended and has no ids left.
        """
        assert self._producer_ids is not None, "use the agent inside `async with`"
        while (taken := self._producer_ids.take()) is None:
            if self._ending is not None:
                raise AgentGoneError(self._ending.reason)
            await self._next_change()
        return taken

    @property
    def image(self) -> MetadataImage:
        """The newest published image."""
        return self.core.image

    @property
    def state(self) -> BrokerState:
        """The broker's state."""
        return self.core.state

    @property
    def ending(self) -> Ending | None:
        """How the agent ended; None: it has not ended."""
        return self._ending

    @property
    def port(self) -> int:
        """The port of the agent's HTTP listener."""
        assert self._listeners is not None, "without `server` there is no listener"
        return self._listeners.http.port

    def handle(self, request: Request, reply: Callable[[Reply], None]) -> None:
        """Answer a request of this process as the agent's HTTP listener would, without the network.

        `request.caller` must be whom this process has authenticated, with the method: only `token`
        and `delegation-token` may bring a pseudonym. Calls `reply` exactly once, now or later.
        """
        assert self._api is not None, "without `server` the agent forwards nothing"
        self._api.handle(request, reply)

    def may_serve(self) -> bool:
        """Whether the broker may answer a client at this moment; call it before each answer."""
        return self.core.may_serve()

    def health(self) -> Health:
        """Return the agent's state, its offsets, and why it does not serve."""
        return health_of(self.core)

    def set_host_ready(self, *, ready: bool) -> None:
        """Set whether the host is ready; it is at the start.

        The broker is online only while the host is ready.
        """
        self.core.set_host_ready(ready=ready)

    def set_directories(
        self, *, failed: Collection[bytes] = (), cordoned: Collection[bytes] | None = None
    ) -> None:
        """Report to the controller which log directories have failed, and which are cordoned.

        Both are ids of `AgentConfig.log_dirs`. Replicas on failed directories leave their ISRs;
        cordoned directories get no new replicas (KIP-858, 1066).
        """
        self.core.set_directories(failed=failed, cordoned=cordoned)

    async def wait_online(self) -> None:
        """Return once the broker is online. Raises AgentGoneError if the agent ends first."""
        while not (self.state is BrokerState.ONLINE and self.may_serve()):
            if self._ending is not None:
                raise AgentGoneError(self._ending.reason)
            await self._next_change()

    async def wait_gone(self) -> Ending:
        """Return once the agent has ended."""
        while self._ending is None:
            await self._next_change()
        return self._ending

    def begin_stop(self) -> None:
        """Begin a controlled shutdown; `wait_gone` returns when it is over."""
        if self._ending is None:
            self.core.stop()

    async def stop(self) -> Ending:
        """Do a controlled shutdown: the leaders move to other brokers, then the image is saved."""
        self.begin_stop()
        return await self.wait_gone()

    def reload_tls(
        self, tls: ssl.SSLContext | None, server_tls: ssl.SSLContext | None = None
    ) -> None:
        """Use other certificates for connections that begin from now on; None: keep the old."""
        if tls is not None and self._requester is not None:
            self._proof.demand(tls)
            self._requester.set_tls(tls)
        if server_tls is not None and self._listeners is not None:
            self._listeners.reload_tls(server_tls)

    # For the core.

    def on_state(self, state: BrokerState, reason: str) -> None:
        """Wake the tasks that wait for a change."""
        self._wake()

    def on_gone(self, reason: str, *, orderly: bool) -> None:
        """Note the end, and wake the tasks that wait for a change."""
        self._ending = Ending(reason, orderly)
        self._wake()

    def _on_producer_ids(self) -> None:
        self._wake()
        if self._host_api is not None:
            self._host_api.on_producer_ids()

    def _wake(self) -> None:
        # Tasks that wait now hold the old event; later tasks wait for the next change.
        self._changed.set()
        self._changed = asyncio.Event()

    async def _next_change(self) -> None:
        await self._changed.wait()


async def run_until_gone(
    agent: BrokerAgent,
    stop_signals: tuple[int, ...],
    reload_signals: Mapping[int, Callable[[], None]],
) -> Ending:
    """Wait until an agent ends that `async with` has started.

    Each of `stop_signals` begins a controlled shutdown. Each of `reload_signals` calls the function
    that it is mapped to.
    """
    loop = asyncio.get_running_loop()
    for number in stop_signals:
        loop.add_signal_handler(number, agent.begin_stop)
    for number, callback in reload_signals.items():
        loop.add_signal_handler(number, callback)
    try:
        return await agent.wait_gone()
    finally:
        for number in (*stop_signals, *reload_signals):
            loop.remove_signal_handler(number)


def _ignore(key: PartitionKey) -> None:
    """For a host that does not ask for ISRs."""


def _all_https(config: AgentConfig) -> bool:
    return all(url.startswith("https://") for url in config.controllers)
