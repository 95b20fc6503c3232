"""An agent on a simulated machine with scripted controllers, over several incarnations."""

import random
from typing import Any

from broker_agent.agent import AgentCore
from broker_agent.config import AgentConfig, Endpoint
from broker_agent.people import AgentPeople
from broker_agent.states import BrokerState
from metadata.image import MetadataImage
from runtime.simulated.host import SimulatedHost
from runtime.simulated.network import SimulatedNetwork
from runtime.simulated.world import World
from tests.simulation.quorum_cluster import quiet_log
from tests.unit.broker_agent.fake_cluster import (
    BROKER,
    CLUSTER_ID,
    ONE,
    THREE,
    TWO,
    Active,
    Controllers,
    Log,
)

SESSION_S = 9.0
LEASE_S = 7.2
HEARTBEAT_S = 2.0


class Seen:
    """A publisher that remembers."""

    def __init__(self) -> None:
        self.steps: list[tuple[int, int, int, bool]] = []
        self.images: list[MetadataImage] = []

    def on_metadata(self, before, after, manifest) -> None:
        self.steps.append((before.offset, after.offset, manifest.offset, manifest.replaced))
        self.images.append(after)


class Rig:
    """A host for agents, and the cluster around it."""

    def __init__(
        self, seed: int = 1, *, urls=(ONE,), publishers=(), log: Log | None = None, **settings
    ):
        self.world = World(seed)
        self.host = SimulatedHost(self.world, SimulatedNetwork(self.world), 101)
        self.log = log if log is not None else Log()
        self.settings = {
            "cluster_id": CLUSTER_ID,
            "broker_id": BROKER,
            "controllers": tuple(urls),
            "endpoints": (Endpoint("CLIENTS", "here", 9092),),
            **settings,
        }
        self.seen = Seen()
        self.publishers = (self.seen, *publishers)
        self.states: list[tuple[BrokerState, bool]] = []
        self.gone: Any = None
        """Why and whether in order, once the agent is gone."""
        self.host_fails = False
        self.agent: AgentCore = None
        self.active: Active = None
        self.boot()

    def boot(self, **settings) -> None:
        """Begin another incarnation; the agent sends nothing before `start`."""
        self.process = self.host.boot()
        self.disk = self.host.disk()
        self.clock = self.process.clock
        self.controllers = Controllers(self.clock)
        active = Active(self.log, self.controllers)
        if self.active is not None:
            active.epoch = self.active.epoch
        self.active = active
        self.states.clear()
        self.gone = None
        self.agent = AgentCore(
            AgentConfig(**{**self.settings, **settings}),
            clock=self.clock,
            random=random.Random(1000 * self.world.seed + self.host.incarnations),
            disk=self.disk,
            requester=self.controllers,
            host=self,
            publishers=self.publishers,
            log=quiet_log(),
        )

    def people(self, key=None) -> AgentPeople:
        """Who judges callers of this agent. It follows nothing by itself."""
        return AgentPeople(key, self.agent.config.super_users, self.clock, lambda: self.agent.image)

    def on_state(self, state, reason) -> None:
        self.states.append((state, self.agent.may_serve()))
        if self.host_fails:
            raise RuntimeError("a mistake of the host")

    def on_gone(self, reason, *, orderly) -> None:
        assert self.gone is None, "the end comes once"
        self.gone = (reason, orderly)

    def start(self) -> None:
        self.do(self.agent.start)

    def do(self, act) -> None:
        """Run code in the agent's process."""
        self.process.run(act)

    def run(self, seconds: float) -> None:
        self.world.run_for(seconds)

    def online(self) -> None:
        """Start, and come online."""
        self.start()
        self.run(1.0)
        assert self.agent.state is BrokerState.ONLINE, self.agent.reason
        assert self.agent.may_serve()

    def restart(self, *, orderly: bool = True) -> None:
        """End this life and boot another."""
        if orderly:
            self.active.may_stop = True
            self.do(self.agent.stop)
            self.run(3.0)
            assert self.gone == (self.gone[0], True), self.gone
        self.host.kill()
        self.boot()

    @property
    def state(self) -> BrokerState:
        return self.agent.state

    @property
    def now(self) -> float:
        return self.clock.monotonic()


__all__ = ["LEASE_S", "ONE", "THREE", "TWO", "Rig", "Seen"]
