"""A simulated cluster: controllers with their quorum, broker agents, and administrators.

Rule: every core is the product's own. This file only boots them on hosts and runs the clients.
`invariants` checks what must hold; it remembers what it saw through all restarts.
"""

import errno
import os
import random as random_module
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from broker_agent.agent import AgentCore
from broker_agent.config import AgentConfig, Endpoint, FetchFrom
from broker_agent.states import BrokerState
from controller.config import ControllerConfig
from controller.controller import Controller
from metadata.bucket_hash import SECRET_BYTES, key_buckets
from metadata.features import BASE
from metadata.sealing import ClusterKey
from metadata.subject_keys import SECRET_BYTES as SECRET_BYTES_OF_ROOTS
from metadata.subject_keys import SubjectKeys
from quorum.api import Quorum, QuorumListener
from quorum.config import QuorumConfig
from quorum.node import QuorumNode
from runtime.http.requests import Caller
from runtime.simulated.archive import SimulatedArchive
from runtime.simulated.host import SimulatedHost
from runtime.simulated.network import SimulatedNetwork
from runtime.simulated.process import SimulatedProcess
from runtime.simulated.requests import SimulatedServer
from runtime.simulated.world import World
from tests.simulation.administrators import Administrators
from tests.simulation.agent_requests import AgentRequests
from tests.simulation.answers import Answers, Judgement
from tests.simulation.answers_rivals import Rivals
from tests.simulation.bridging import Bridging
from tests.simulation.broker_faults import BrokerFaults
from tests.simulation.broker_leases import BrokerLeases
from tests.simulation.carriers import Carriers, credential_of
from tests.simulation.clearers import Clearers
from tests.simulation.clients import KEY, TOKEN_MS, Clients
from tests.simulation.cluster_shape import Shape
from tests.simulation.combined import CombinedNodes
from tests.simulation.configurers import Configurers
from tests.simulation.credential_keepers import CredentialKeeper
from tests.simulation.declarers import DECLARERS, Declarer
from tests.simulation.duplicate_brokers import DuplicateBrokers
from tests.simulation.erasing import ERASERS, PEOPLE, ErasedValues, Eraser
from tests.simulation.fault_atlas import REFUSALS, ClusterFaultAtlas
from tests.simulation.importers import Importer
from tests.simulation.invariants import Invariants
from tests.simulation.joined_requests import JoinedRequests
from tests.simulation.kafka_observers import KafkaObservers
from tests.simulation.large_requests import LargeRequests
from tests.simulation.movers import Movers, directories_of
from tests.simulation.people_at_agents import JUDGING, PeopleAtAgents
from tests.simulation.quorum_cluster import quiet_log, raise_it, raising_log
from tests.simulation.releases import Releases
from tests.simulation.replicas import MIN_ISR, Replicas
from tests.simulation.right_seekers import SUPER_USERS, RightSeekers
from tests.simulation.session_clients import SessionClients
from tests.simulation.signed_heads import SignedHeads
from tests.simulation.silent_brokers import SilentBrokers
from tests.simulation.unregistering import Unregistering
from tests.simulation.voter_requests import VoterRequests

CLUSTER_ID = "simulated-cluster-0002"
FIRST_BROKER_HOST = 101
ADMIN_HOST = 900
CONFIGURER_HOST = 910
CLIENTS_HOST = 920
WRONG_KEY = ClusterKey(b"not the key of simulated cluster")
ARCHIVED: dict[str, Any] = {
    "archive_keep_bytes": 0,
    "archive_every_s": 0.3,
    "archive_cache_bytes": 40_000,
}
"""The settings of `Shape.archived`."""
ENFORCED: dict[str, Any] = {"authorization": "on", "super_users": SUPER_USERS}
"""The settings of `Shape.rights`."""
FULL = "the disk is full"
FAILED = os.strerror(errno.EIO)
READ_ONLY = "read-only"
"""A node says so when its disk made it end; no other kind of end is in order."""


def url_of(node_id: int) -> str:
    """Where a controller answers."""
    return f"http://controller-{node_id}"


@dataclass
class BrokerIncarnation:
    """One incarnation of a broker's process."""

    broker_id: int
    process: SimulatedProcess
    agent: AgentCore = None
    gone: str = ""
    orderly: bool = False
    offset: int = 0
    shown: Any = None
    """The image that its readers had after the last event."""
    duties: dict[Any, tuple[int, int]] = field(default_factory=dict)
    end: Callable[[], None] | None = None
    """Ends the process once the agent has ended; None: it is killed."""
    requests: tuple[Any, ...] = ()
    """See `agent_requests`."""

    def on_state(self, state: BrokerState, reason: str) -> None:
        """The host of a simulated broker does nothing with its state."""

    def on_gone(self, reason: str, *, orderly: bool) -> None:
        self.gone, self.orderly = reason, orderly
        self.process.schedule(0, self.end or self.process.kill, "broker-gone")


class Cluster:
    """All of it; also what the nemesis disturbs (its hosts are the controllers')."""

    def __init__(self, seed: int, shape: Shape) -> None:
        self.seed, self.shape = seed, shape
        self.world = World(seed)
        # As each process does at its start; here one secret serves them all.
        key_buckets(self.world.random("buckets").randbytes(SECRET_BYTES))
        self.network = SimulatedNetwork(self.world)
        self.hosts = {
            n: SimulatedHost(self.world, self.network, n) for n in range(1, shape.controllers + 1)
        }
        self.broker_hosts = (
            self.hosts
            if shape.combined
            else {
                b: SimulatedHost(self.world, self.network, FIRST_BROKER_HOST + b)
                for b in range(1, shape.brokers + 1)
            }
        )
        profiles = self.world.random("disks")
        for host in self.hosts.values():
            host.faults.set_profile(profiles.choice(shape.disks))
        self.peers = tuple(self.network.peer(n) for n in self.hosts)
        self.controllers: dict[int, Controller] = {}
        self.links: dict[int, Any] = {}
        self.brokers: dict[int, BrokerIncarnation] = {}
        self.wanted: dict[int, bool] = dict.fromkeys(self.broker_hosts, True)
        self.stopped: list[tuple[int, str]] = []
        self.busy = True
        self.healed = False
        """No fault is under way any more."""
        self.fault_atlas: ClusterFaultAtlas | None = None
        """Where folders are damaged; see `guard`."""
        self.broker_faults = BrokerFaults(self)
        self.joined: Counter[str] = Counter()
        """How many requests had one change and how many had several, where they are joined."""
        self.carriers = Carriers(self.world)
        self.leases = BrokerLeases(self)
        self.silent_brokers = SilentBrokers(self)
        self.invariants = Invariants(self)
        self.answers, self.judgement = Answers(self.world), Judgement(self)
        self.admins = Administrators(self, ADMIN_HOST)
        self.rivals = Rivals(self, shape.rivals)
        self.configurers = Configurers(self, CONFIGURER_HOST)
        self.clients = Clients(self, CLIENTS_HOST)
        self.session_clients: Any = SessionClients(self)
        self.importer = Importer(self)
        self.trees: dict[bytes, SubjectKeys] = {}
        """Every tree of subjects' keys that a controller drew, whole, by id."""
        self._opening = KEY.copy()
        self.keys_of: dict[int, ClusterKey] = {}
        """The cluster key of each controller's present life, with what it can open."""
        self.erased_values = ErasedValues(self)
        self.people_at_agents = PeopleAtAgents(self) if shape.pseudonyms else None
        self.wrong_keys = 0
        """How often a controller began with a wrong cluster key."""
        self.agent_requests = AgentRequests(self)
        self.duplicate_brokers = DuplicateBrokers(self)
        self.releases = Releases(self) if shape.old_release else None
        self.combined = CombinedNodes(self) if shape.combined else None
        self.replicas = Replicas(self)
        self.movers = Movers(self)
        self.unregistering = Unregistering(self)
        self.voter_requests = VoterRequests(self)
        self.signed_heads = SignedHeads(self)
        self.bridging = Bridging(self)
        self.clearers = Clearers(self)
        self.large_requests = LargeRequests(self)
        self.right_seekers = RightSeekers(self)
        self.archive = SimulatedArchive(self.world) if shape.archived else None
        self.kafka = KafkaObservers(self) if shape.kafka else None
        self.world.after_event(self.invariants.after_event)
        if self.kafka is not None:
            self.world.after_event(self.kafka.after_event)
        if shape.erasing:
            self.world.after_event(self.erased_values.after_event)

    def requests_of(self, host: SimulatedHost, caller: Caller) -> Any:
        """Return what sends an administrator's requests."""
        requests = host.requests(caller)
        if not self.shape.joined:
            return requests
        dice = self.world.random(f"joined/{host.node_id}/{caller.principal}")
        return JoinedRequests(requests, host.process, dice, self.joined)

    def expect_damage(self) -> ClusterFaultAtlas:
        """From now on folders may be damaged; return who watches over that."""

        def quorum_of(node_id: int) -> Any:
            controller = self.controllers.get(node_id)
            return None if controller is None else controller.quorum

        self.fault_atlas = ClusterFaultAtlas(self, CLUSTER_ID, quorum_of, ("log", "checkpoints"))
        self.world.after_event(self.fault_atlas.after_event)
        return self.fault_atlas

    # -- controllers --------------------------------------------------------------------------

    def start(self, node_id: int) -> None:
        """Boot a controller; for the nemesis too."""
        process = self.hosts[node_id].boot()
        process.run(lambda: self._begin_node(node_id, process), "start")

    def _begin_node(self, node_id: int, process: SimulatedProcess) -> None:
        self._begin(node_id, process)
        if self.combined is not None and process.alive:
            self.combined.begin_agent(node_id, process)

    def _begin(self, node_id: int, process: SimulatedProcess) -> None:
        host, shape = self.hosts[node_id], self.shape
        disk = host.disk()
        links = self.links[node_id] = host.links()
        dice = random_module.Random(self.world.random(f"node/{node_id}").getrandbits(64))
        log = quiet_log() if self.fault_atlas is None else self.fault_atlas.log(node_id)

        def make_quorum(listener: QuorumListener) -> Quorum:
            return QuorumNode(
                QuorumConfig(
                    cluster_id=CLUSTER_ID,
                    node_id=node_id,
                    peers=self.peers,
                    first_voters=shape.first_voters,
                    tail_bytes=shape.tail_bytes,
                    segment_bytes=32_000,
                ),
                clock=process.clock,
                random=dice,
                disk=disk,
                links=links,
                listener=listener,
                log=log,
            )

        config = ControllerConfig(
            cluster_id=CLUSTER_ID,
            node_id=node_id,
            compare_records=True,
            controller_urls={n: url_of(n) for n in self.hosts},
            session_s=shape.session_s,
            heartbeat_s=shape.heartbeat_s,
            standbys_take_heartbeats=shape.standbys,
            checkpoint_bytes=shape.checkpoint_bytes,
            ledger_segment_bytes=shape.segment_bytes,
            scrub_interval_s=shape.scrub_s,
            partition_mutations_per_s=shape.mutations_per_s or 20_000,
            partition_mutations_burst=2 * shape.mutations_per_s or 200_000,
            **(self._replication() if shape.replicated else {}),
            **(ARCHIVED if shape.archived else {}),
            **(self.signed_heads.settings(node_id) if shape.heads else {}),
            cluster_key=self._key_for(node_id) if shape.clients else None,
            seal_addresses=shape.sealed_addresses,
            pseudonyms=(f"User:*{PEOPLE}",) if shape.pseudonyms else (),
            initial_features=BASE if shape.low_levels else {},
            token_period_ms=TOKEN_MS,
            **(ENFORCED if shape.rights else {}),
        )
        controller = Controller(
            config,
            clock=process.clock,
            random=dice,
            disk=disk,
            quorum_factory=make_quorum,
            log=log,
            on_stopped=partial(self._on_stopped, node_id, process),
            on_defect=raise_it,
            archive=None if self.archive is None else self.archive.of(process),
            draw_secret=self._draws(self.world.random(f"secrets/{node_id}")),
        )
        if self.kafka is not None:
            self.kafka.follow(node_id, controller, config, process.clock, disk, log)
        if self.releases is not None:
            self.releases.begin_controller(node_id, controller)
        self.controllers[node_id] = controller
        handler = self.carriers.watch(node_id, controller)
        self.invariants.controller_started(node_id)
        try:
            controller.start()
        except REFUSALS as error:
            if self.fault_atlas is None:
                raise
            process.kill()
            self.fault_atlas.refused(node_id, error)
            return
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EIO, errno.EROFS):
                raise
            process.schedule(0, partial(self._end, node_id, process.kill), "disk")
            return
        if self.fault_atlas is not None:
            self.fault_atlas.started(node_id)
        SimulatedServer(self.network, process, url_of(node_id), handler)

    def _replication(self) -> dict[str, Any]:
        """Return settings with which replication is at work in a short run."""
        return {
            "min_insync_replicas": MIN_ISR,
            "unclean_leader_election": self.seed % 3 == 0,
            "unclean_election_s": 3.0,
            "leader_balance_s": 2.0,
        }

    def _on_stopped(self, node_id: int, process: SimulatedProcess, reason: str) -> None:
        """A node that stops itself is a violation, unless its disk made it.

        What was not synced when a disk failed may be lost with it: the page cache forgets.
        """
        killed = partial(self._end, node_id, process.kill)
        may_hand_over = FULL in reason or FAILED in reason
        if self.combined is not None and process.alive and may_hand_over:
            self.combined.controller_stopped(node_id, process, failed=FAILED in reason)
        elif FULL in reason or READ_ONLY in reason.lower():
            process.schedule(0, killed, "no-room")
        elif self.fault_atlas is not None and self.fault_atlas.may_stop(node_id, reason):
            process.schedule(0, killed, "damaged")
            self.fault_atlas.stopped(node_id, reason)
        elif FAILED in reason:
            self.later(0, partial(self._end, node_id, self.hosts[node_id].lose_power))
        else:
            self.stopped.append((node_id, reason))

    def _end(self, node_id: int, end: Callable[[], None]) -> None:
        """End a process because of its disk; a slow one keeps it alive until now."""
        end()
        if self.healed:
            # No fault is left whose end would start it again.
            self.later(0.5, partial(self._start_again, node_id))

    def _start_again(self, node_id: int) -> None:
        if not self.hosts[node_id].running:
            self.start(node_id)

    def running(self) -> dict[int, Controller]:
        """The controllers whose processes live."""
        return {n: c for n, c in self.controllers.items() if self.hosts[n].running}

    def leader(self) -> int | None:
        """Return the active controller, as far as it can be seen from outside."""
        active = [
            (controller.quorum.leader_and_epoch().epoch, n)
            for n, controller in self.running().items()
            if controller.active
        ]
        return max(active)[1] if active else None

    def _key_for(self, node_id: int) -> ClusterKey:
        """Return the file's key: controller 1 may have a wrong one.

        Only once the log names the right one: else the log might name the wrong one.
        """
        named = any(
            each.image.quorum.cluster_key_id == KEY.id for each in self.controllers.values()
        )
        lives = self.hosts[1].incarnations
        wrong = self.shape.wrong_keys and named and node_id == 1 and lives % 2 == 0
        if wrong:
            self.wrong_keys += 1
            self.later(0.05, lambda life=self.hosts[1].incarnations: self._never_leads(life))
        key = self.keys_of[node_id] = (WRONG_KEY if wrong else KEY).copy()
        return key

    def _draws(self, dice: Any) -> Callable[[int], bytes]:
        """Return what a controller draws secrets with; each root is remembered here."""

        def draw(size: int) -> bytes:
            drawn: bytes = dice.randbytes(size)
            if size == SECRET_BYTES_OF_ROOTS:
                keys = SubjectKeys.of_root(drawn)
                self.trees[keys.id] = keys
            return drawn

        return draw

    def opening_key(self) -> ClusterKey:
        """Return a key that opens everything, also what is erased: the test's own."""
        named = [each.image.quorum.subject_keys_id for each in self.controllers.values()]
        known = [self.trees[keys_id] for keys_id in named if keys_id in self.trees]
        self._opening.subjects.keys = known[0] if known else None
        return self._opening

    def _never_leads(self, life: int) -> None:
        if self.hosts[1].incarnations == life:
            if self.hosts[1].running and self.controllers[1].active:
                self.world.fail("S4: a controller with another cluster key leads", 1)
            self.later(0.05, lambda: self._never_leads(life))

    def levels_raised(self) -> int:
        """Return how many feature levels some controller knows to be above those of the begin."""
        levels = [dict(each.image.features.levels.items()) for each in self.running().values()]
        return max(
            (sum(each.get(n, 0) > low for n, low in BASE.items()) for each in levels), default=0
        )

    def reset_link(self, one: int, other: int) -> None:
        """Break a link between two controllers."""
        if one in self.links and self.hosts[one].running:
            self.links[one].reset(other)

    # -- brokers ------------------------------------------------------------------------------

    def start_broker(self, broker_id: int) -> None:
        """Boot a broker's agent, unless it runs."""
        host = self.broker_hosts[broker_id]
        if host.running:
            return
        if self.combined is not None:
            self.start(broker_id)
        else:
            process = host.boot()
            process.run(lambda: self._begin_broker(broker_id, process), "start-broker")

    def _begin_broker(self, broker_id: int, process: SimulatedProcess) -> None:
        self.brokers[broker_id] = self.begin_agent(broker_id, self.broker_hosts[broker_id], process)

    def begin_agent(
        self, broker_id: int, host: SimulatedHost, process: SimulatedProcess, folder: str = ""
    ) -> BrokerIncarnation:
        """Start an agent for a broker's id on a machine."""
        shape = self.shape
        incarnation = BrokerIncarnation(broker_id, process)
        requester = host.requests(credential_of(broker_id, always=shape.rights))
        own = self.agent_requests.publishers_of(incarnation, requester)
        people = self.people_at_agents
        if people is not None:
            own += people.publishers_of(incarnation, requester)
        incarnation.agent = AgentCore(
            AgentConfig(
                cluster_id=CLUSTER_ID,
                broker_id=broker_id,
                controllers=tuple(url_of(n) for n in self.hosts),
                endpoints=(Endpoint("PLAINTEXT", f"broker-{broker_id}", 9092),),
                rack=f"rack-{broker_id % 2}",
                log_dirs=directories_of(broker_id) if shape.moved else (),
                features=() if self.releases is None else self.releases.features_of(broker_id),
                session_ms=int(shape.session_s * 1000),
                heartbeat_ms=int(shape.heartbeat_s * 1000),
                fetch_from=FetchFrom.ANY if shape.standbys else FetchFrom.LEADER,
                image_records_between_saves=40,
                **(JUDGING if people is not None else {}),
            ),
            clock=process.clock,
            random=random_module.Random(self.world.random(f"broker/{broker_id}").getrandbits(64)),
            disk=host.disk(folder),
            requester=requester,
            host=incarnation,
            publishers=(*own, self.invariants.publisher(incarnation)),
            log=raising_log(),
        )
        if people is not None:
            people.follow(incarnation)
        incarnation.agent.start()
        self.agent_requests.follow(incarnation)
        if shape.replicated:
            credential = credential_of(broker_id, always=shape.rights)
            self.replicas.begin_leader(incarnation, host.requests(credential))
        return incarnation

    def incarnation_on(self, host_id: int) -> BrokerIncarnation | None:
        """Return the newest life of an agent on a machine."""
        first = self.brokers.get(host_id - (0 if self.combined else FIRST_BROKER_HOST))
        return first if first is not None else self.duplicate_brokers.incarnation_on(host_id)

    def later(self, delay_s: float, act: Callable[[], None]) -> None:
        """Let the harness do something."""
        self.world.schedule(int(delay_s * 1_000_000), act, None, "harness")

    # -- the run ------------------------------------------------------------------------------

    def start_all(self) -> None:
        """Boot everything."""
        for node_id in self.hosts:
            self.start(node_id)
        for broker_id in self.broker_hosts:
            self.start_broker(broker_id)
        self.admins.start()
        if self.shape.rivals:
            self.rivals.start()
        if self.shape.configurers:
            self.configurers.start()
        if self.shape.clients:
            if self.shape.erasing:
                self.clients.start((Eraser, ERASERS), (CredentialKeeper, 1))
            else:
                self.clients.start((Declarer, DECLARERS), (CredentialKeeper, 1))
        if self.people_at_agents is not None:
            self.people_at_agents.start()
        if self.shape.session_clients:
            self.session_clients.start()
        if self.shape.importer:
            self.importer.start()
        if self.shape.duplicate_brokers:
            self.duplicate_brokers.start()
        if self.releases is not None:
            self.releases.start()
        if self.shape.replicated:
            self.replicas.start()
        if self.shape.moved:
            self.movers.start()
            self.clearers.start()
            self.large_requests.start()
        if self.shape.forgotten:
            self.unregistering.start()
        if self.shape.first_voters:
            self.voter_requests.start()
        if self.shape.heads:
            self.signed_heads.start()
        if self.shape.bridged:
            self.bridging.start()
        if self.shape.rights:
            self.right_seekers.start()
        if self.combined is not None:
            self.combined.start()
        self.broker_faults.begin()

    def at_rest(self) -> bool:
        """Everybody has the same, and every broker is online."""
        running = self.running()
        if len(running) < len(self.hosts) or self.leader() is None:
            return False
        offsets = {controller.image.offset for controller in running.values()}
        # An image that was loaded from a checkpoint may be ahead of its node's ledger.
        offsets |= {c.ledger.log_end if c.ledger else -1 for c in running.values()}
        incarnations = self.brokers.values()
        online = all(
            incarnation.process.alive
            and incarnation.agent.state is BrokerState.ONLINE
            # Publishers are told of an image in slices; what they keep is judged only after that.
            and not incarnation.agent.catching_up.following
            for incarnation in incarnations
        )
        followed = {incarnation.agent.image.offset for incarnation in incarnations}
        settled = self.releases is None or self.releases.settled()
        settled = settled and (not self.shape.replicated or self.replicas.settled())
        settled = settled and (not self.shape.moved or self.movers.settled())
        settled = settled and self.agent_requests.settled()
        return online and len(offsets) == 1 and followed <= offsets and settled

    def unrest(self) -> str:
        """Return what keeps the cluster from coming to rest."""
        controllers = {n: (c.image.offset, c.active) for n, c in self.running().items()}
        brokers = {
            b: (
                incarnation.process.alive,
                incarnation.agent.state.value,
                incarnation.agent.image.offset,
                incarnation.gone,
            )
            for b, incarnation in self.brokers.items()
        }
        return f"controllers {controllers}, brokers {brokers}, stopped {self.stopped}"
