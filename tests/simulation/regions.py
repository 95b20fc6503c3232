"""Controllers in three regions: the whole cluster on paths as long as those between regions.

Two regions have two controllers each, the third has one. Controller 1 stands in the region that a
run asks for, since a leader that resigns prefers it. Each region has two brokers and a client.

Rule: a packet that is lost is sent again, as by TCP. Its frame, and all frames behind it on the
same connection, arrive `RESEND_MS` and a round trip later.
"""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from metadata.uuids import uuid7, uuid_text
from runtime.http.requests import Caller, Reply, Request, Unreachable
from runtime.simulated.disk_faults import DiskProfile
from runtime.simulated.host import SimulatedHost
from runtime.simulated.network import PathProfile
from runtime.simulated.world import US
from tests.checkers.history import CREATE
from tests.simulation.cluster import FIRST_BROKER_HOST, Cluster, url_of
from tests.simulation.cluster_shape import Shape

CONTROLLERS = {"A": 2, "B": 2, "C": 1}
BROKERS = 6
ROUND_TRIP_MS = {"AB": 30, "BC": 70, "AC": 90}
INSIDE_MS = 1
"""A round trip within a region."""
RESEND_MS = 200
"""The least retransmission time-out of Linux; the round trip is added."""
DISK = DiskProfile(200, 2_000)
FIRST_CLIENT_HOST = 940
EVERY_S = 10.0
"""How long a client waits for one answer."""


@dataclass(frozen=True)
class Weather:
    """How steady the paths between regions are."""

    jitter: float = 0.1
    """A frame takes up to this share of the round trip longer."""
    lost: float = 0.001
    """The share of frames that are sent again."""
    dropped: float = 0.0
    """The share of frames that never arrive. TCP has no such loss; links may have."""

    def path(self, round_trip_ms: float) -> PathProfile:
        """Return what one direction of a path between regions is like."""
        one_way = round_trip_ms * 500
        return PathProfile(
            low_us=int(one_way),
            high_us=int(one_way + self.jitter * round_trip_ms * 1_000),
            tail=self.lost,
            loss=self.dropped,
            resend_us=int((RESEND_MS + round_trip_ms) * 1_000),
        )


@dataclass
class Client:
    """A client of one region, and how long its requests took."""

    host: SimulatedHost
    changes_ms: list[float] = field(default_factory=list)
    reads_ms: list[float] = field(default_factory=list)
    failures: int = 0


class Regions:
    """The cluster and its clients."""

    def __init__(self, seed: int, first: str, weather: Weather | None = None) -> None:
        """`first`: the region of controller 1."""
        shape = Shape(
            controllers=sum(CONTROLLERS.values()),
            brokers=BROKERS,
            session_s=9.0,
            heartbeat_s=2.0,
            checkpoint_bytes=10_000_000,
            tail_bytes=1_000_000,
            segment_bytes=4_000_000,
            disks=(DISK,),
        )
        self.cluster = Cluster(seed, shape)
        self.cluster.busy = False  # the shape's own clients rest
        self.world = self.cluster.world
        self.dice = self.world.random("regions")
        self.region_of = dict(zip(self.cluster.hosts, _places(first), strict=True))
        for broker_id in self.cluster.broker_hosts:
            self.region_of[FIRST_BROKER_HOST + broker_id] = "ABC"[broker_id % 3]
        self.clients = {}
        for number, region in enumerate(CONTROLLERS):
            host_id = FIRST_CLIENT_HOST + number
            self.region_of[host_id] = region
            host = SimulatedHost(self.world, self.cluster.network, host_id)
            host.boot()
            self.clients[region] = Client(host)
        self._lay(weather or Weather())
        self._names = 0

    def _lay(self, weather: Weather) -> None:
        """Give each path its length."""
        # Whole regions are cut off here, brokers too, so no judge may take a broker for reachable.
        self.cluster.network.plain_since_us = math.inf
        inside = PathProfile(INSIDE_MS * 400, INSIDE_MS * 600, tail=0.0)
        for source, here in self.region_of.items():
            for target, there in self.region_of.items():
                between = "".join(sorted(here + there))
                path = self.cluster.network.path(source, target)
                path.profile = inside if here == there else weather.path(ROUND_TRIP_MS[between])

    def start(self) -> None:
        """Boot everything, and have controller 1 lead and all brokers online."""
        for node_id in self.cluster.hosts:
            self.cluster.start(node_id)
        for broker_id in self.cluster.broker_hosts:
            self.cluster.start_broker(broker_id)
        self.until(self.settled, 30.0)
        for _ in range(10):
            leader = self.cluster.leader()
            if leader == 1:
                break
            if leader is not None:
                quorum = self.cluster.controllers[leader].quorum
                resign = partial(quorum.resign, "another region is to lead")
                self.cluster.hosts[leader].process.schedule(0, resign, "resign")
            self.world.run_for(3.0)
        self.until(self.settled, 30.0)
        self.world.run_for(1.0)

    def settled(self) -> bool:
        """Tell whether a controller leads and every broker is online."""
        return self.cluster.leader() is not None and self.cluster.at_rest()

    def until(self, reached: Callable[[], bool], most_s: float) -> float:
        """Run until something is so; return how long it took, in ms. Fails after `most_s`."""
        began_us = self.world.now_us
        if not self.world.run_for(most_s, reached):
            self.world.fail(f"not reached within {most_s} s: {self.cluster.unrest()}", None)
        return (self.world.now_us - began_us) / 1_000

    def members(self, region: str) -> list[int]:
        """Return the machines of a region."""
        return [host for host, here in self.region_of.items() if here == region]

    def cut_off(self, region: str) -> None:
        """Cut every path between a region and the others."""
        others = [host for host, here in self.region_of.items() if here != region]
        self.cluster.network.cut(self.members(region), others)

    def rejoin(self, region: str) -> None:
        """Undo `cut_off`."""
        others = [host for host, here in self.region_of.items() if here != region]
        self.cluster.network.mend(self.members(region), others)

    def epoch(self) -> int:
        """Return the newest epoch that any controller knows."""
        running = self.cluster.running().values()
        return max(each.quorum.leader_and_epoch().epoch for each in running)

    def fenced(self) -> int:
        """Return how many brokers are fenced, as the leader sees it."""
        leader = self.cluster.leader()
        assert leader is not None
        brokers = self.cluster.controllers[leader].image.cluster.brokers
        return sum(broker.fenced for broker in brokers.values())

    def fenced_outside(self, region: str) -> int:
        """Return how many brokers outside a region are fenced, as a leader outside sees it."""
        for n, controller in self.cluster.running().items():
            if controller.active and self.region_of[n] != region:
                brokers = controller.image.cluster.brokers
                return sum(
                    broker.fenced
                    for broker_id, broker in brokers.items()
                    if self.region_of[FIRST_BROKER_HOST + broker_id] != region
                )
        raise AssertionError("nobody leads")

    def first_change(self, lost: str) -> None:
        """Have a client beside the newest leader change something, and run until that is done.

        `lost`: a region whose leader doesn't count.
        """
        active = {
            controller.quorum.leader_and_epoch().epoch: n
            for n, controller in self.cluster.running().items()
            if controller.active and self.region_of[n] != lost
        }
        region = self.region_of[active[max(active)]]
        done = self.clients[region].changes_ms
        before = len(done)
        self.change(region)
        self.until(lambda: len(done) > before, EVERY_S)

    def leads_outside(self, region: str) -> bool:
        """Tell whether a controller of another region is active."""
        return any(
            controller.active and self.region_of[n] != region
            for n, controller in self.cluster.running().items()
        )

    # -- requests -----------------------------------------------------------------------------

    def load(self, regions: str, seconds: float, per_s: float) -> None:
        """Let clients change and read for a while, each so often, whatever the answers take."""
        for region in regions:
            for ask in (self.change, self.read):
                for number in range(int(seconds * per_s)):
                    delay_us = int((number + self.dice.random()) / per_s * US)
                    process = self.clients[region].host.process
                    process.schedule(delay_us, partial(ask, region), "client")
        self.world.run_for(seconds + EVERY_S)

    def change(self, region: str) -> None:
        """Create a topic; the judge of answers learns of it."""
        self._names += 1
        client, name = self.clients[region], f"t{self._names}"
        request_id = uuid7(client.host.process.clock.wall_ms(), self.dice.getrandbits(74))
        headers = {
            "content-type": "application/json",
            "x-logberg-request-id": uuid_text(request_id),
            "x-logberg-reason": "regions",
        }
        topic = {"name": name, "numPartitions": 1, "replicationFactor": 3}
        body = json.dumps({"topics": [topic]}).encode()
        answers = self.cluster.answers
        operation = answers.asked(CREATE, "regions", topic=name, request_id=request_id.hex())

        def acknowledged(reply: Any) -> None:
            answers.changed(operation, reply)

        request = Request("POST", "/v1/topics", body, headers=headers)
        self._ask(region, request, client.changes_ms, acknowledged)

    def read(self, region: str) -> None:
        """Read linearizably."""
        request = Request("GET", "/v1/brokers/1")
        self._ask(region, request, self.clients[region].reads_ms, lambda _reply: None)

    def _ask(
        self,
        region: str,
        request: Request,
        took_ms: list[float],
        on_done: Callable[[Any], None],
    ) -> None:
        client = self.clients[region]
        leader = self.cluster.leader()
        if leader is None:
            client.failures += 1
            return
        began_us = self.world.now_us

        def answered(answer: Reply | Unreachable) -> None:
            if isinstance(answer, Reply) and answer.status == 200:
                took_ms.append((self.world.now_us - began_us) / 1_000)
                on_done(json.loads(answer.body))
            else:
                client.failures += 1

        requests = client.host.requests(Caller("User:admin", "token", "10.0.0.9"))
        requests.request(url_of(leader), request, answered, EVERY_S)


def _places(first: str) -> list[str]:
    """Return the regions of the controllers in the order of their ids."""
    order = [first, *(region for region in CONTROLLERS if region != first)]
    return [region for region in order for _ in range(CONTROLLERS[region])]


def quantile(values: list[float], share: float) -> float:
    """Return the value that this share of the values is at most."""
    return sorted(values)[min(int(share * len(values)), len(values) - 1)]
