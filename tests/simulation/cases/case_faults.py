"""What happens to the controllers while a case runs.

Rule: faults strike at requests of the case's clients, because most cases take a few milliseconds.
The seed draws at which requests, how soon after, and what. A leader changes no more often than
sessions can bear: the cases say what holds of a session that lives, and each new leader gives all
sessions their whole ttl again.
"""

from functools import partial

from runtime.simulated.fault_schedules import FaultSchedule
from runtime.simulated.nemesis import Nemesis
from tests.simulation.cluster import Cluster

HARD = {
    "kill": 2.0,
    "kill_leader": 4.0,
    "kill_at_step": 2.0,
    "power": 2.0,
    "pause_leader": 3.0,
    "isolate_leader": 3.0,
    "one_way": 2.0,
    "flapping": 1.0,
    "stranded_leader": 3.0,
}
"""These can end a leadership."""
LIGHT = {"reset": 2.0, "slow_disk": 3.0, "slow_paths": 1.0, "wild": 3.0, "lossy": 1.0}
LENGTH_S = (0.02, 0.8)
GAP_REQUESTS = (2, 30)
GROWTH = 1.2
SOON_US = (0, 50, 200, 500, 1_000, 3_000, 20_000)
"""How long after a request a fault strikes: before it arrives, while it is decided, or later."""


class CaseFaults:
    """Strikes at drawn requests."""

    def __init__(self, cluster: Cluster, rest_s: float) -> None:
        """`rest_s`: the least time between two faults that can end a leadership."""
        self._world = cluster.world
        self._dice = cluster.world.random("case faults")
        schedule = FaultSchedule(
            {**HARD, **LIGHT}, gap_s=(2 * rest_s, 4 * rest_s), length_s=LENGTH_S
        )
        self.nemesis = Nemesis(cluster, schedule)
        self._rest_s = rest_s
        self._rested_s = 0.0
        self._going = False
        self._requests = 0
        self._next = 0
        self._gap = 1.0

    def begin(self) -> None:
        """Begin to strike."""
        self._going = True
        self._next = self._dice.randrange(1, GAP_REQUESTS[1])
        self.nemesis.start()

    def end(self) -> None:
        """End all faults."""
        self._going = False
        self.nemesis.heal()

    def on_request(self) -> None:
        """A client of the case sends a request."""
        self._requests += 1
        if not self._going or self._requests < self._next:
            return
        # Ever rarer, so that a case of many requests gets done.
        self._gap *= GROWTH
        self._next = self._requests + int(self._gap * self._dice.randint(*GAP_REQUESTS))
        rested = self._world.now >= self._rested_s
        kinds = {**HARD, **LIGHT} if rested else LIGHT
        kind = self._dice.choices(list(kinds), list(kinds.values()))[0]
        if kind in HARD:
            self._rested_s = self._world.now + self._rest_s
        self._world.schedule(
            self._dice.choice(SOON_US), partial(self._strike, kind), None, "case-fault"
        )

    def _strike(self, kind: str) -> None:
        if self._going:
            self.nemesis.inject(kind)
