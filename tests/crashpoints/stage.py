"""A simulated cluster in which one controller has real files, and how it is judged.

Rule: the other nodes, the clients and the judges are those of the simulator. A kill alone does no
harm. So besides the invariants: no node may report an error, none may refuse to vote, and once the
node is at rest, its folder must have no unfinished files of the crash.
"""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import structlog

from ledger.reader import LedgerReader
from tests.crashpoints.real_host import RealHost
from tests.crashpoints.steps import Steps
from tests.simulation import cluster as simulator
from tests.simulation.answers import Judgement
from tests.simulation.cluster import Cluster
from tests.simulation.cluster_shape import Shape
from tests.simulation.patches import patched

REST_S = 60.0


class StruckError(Exception):
    """The node was killed at the point that this copy of the world is about."""


class Stage:
    """A cluster in virtual time, node `node_id` in a real folder."""

    def __init__(self, seed: int, node_id: int, steps: Steps, shape: Shape) -> None:
        self.node_id = node_id
        self.cluster = Cluster(seed, shape)
        self.host = RealHost(self.cluster.world, self.cluster.network, node_id, steps)
        self.cluster.hosts[node_id] = self.host
        self.struck = False
        """Set by whoever kills the node at a point."""
        self._loaded = False
        self.errors: list[str] = []
        self.seen: Counter[str] = Counter()
        """What nodes said they did, by event name."""

    # -- for scenarios -----------------------------------------------------------------------------

    def begin(self) -> None:
        """Boot everything, and let the quorum form and the brokers serve."""
        cluster = self.cluster
        with self.listening():
            for node_id in cluster.hosts:
                self.start(node_id)
            for broker_id in cluster.broker_hosts:
                cluster.start_broker(broker_id)
        self._load()
        self.until(lambda: cluster.admins.counts.acknowledged > 0, "a first acknowledgement")

    def _load(self) -> None:
        if not self._loaded:
            self._loaded = True
            self.cluster.admins.start()

    def pass_time(self, seconds: float, stop: Callable[[], bool] | None = None) -> bool:
        """Let time pass; raise StruckError as soon as the node was killed at its point."""
        with self.listening():
            stopped = self.cluster.world.run_for(
                seconds, lambda: self.struck or (stop is not None and stop())
            )
        if self.struck:
            raise StruckError
        return stopped

    def until(self, stop: Callable[[], bool], what: str, limit_s: float = 30.0) -> None:
        """Let time pass until `stop`, which must come."""
        if not self.pass_time(limit_s, stop):
            self.fail(f"never: {what}; {self.cluster.unrest()}")

    def start(self, node_id: int) -> None:
        """Boot a controller."""
        with self.listening():
            self.cluster.start(node_id)
        if self.struck:
            raise StruckError

    def stop(self, node_id: int) -> None:
        """Have a controller leave in order, as SIGTERM does."""
        host, controller = self.cluster.hosts[node_id], self.cluster.controllers[node_id]

        def leave() -> None:
            # A disk that refuses the last sync: the process says so, and ends all the same.
            with suppress(OSError):
                controller.stop()

        with self.listening():
            host.process.run(leave, "stop")
        try:
            self.pass_time(0.3)
        finally:
            # Also when its last sync was refused: the process says so and ends.
            host.kill()

    def caught_up(self) -> bool:
        """Whether the node has as much as any."""
        running = self.cluster.running()
        mine = running.get(self.node_id)
        ends = [controller.image.offset for controller in running.values()]
        return mine is not None and mine.ledger is not None and mine.image.offset == max(ends)

    def whole(self) -> bool:
        """Whether the node's history begins at the beginning: a catch-up's gap is filled."""
        return self.caught_up() and LedgerReader(self.host.disk()).log_start == 0

    def fail(self, what: str) -> None:
        """End the run as failed."""
        self.cluster.world.fail(what, self.node_id)

    # -- after the point -------------------------------------------------------------------------

    def go_on(
        self, opened: Callable[[], None] = lambda: None, *, errors_before: bool = False
    ) -> Counter[str]:
        """Boot the node again on its folder, go on under load, come to rest, and judge.

        `opened` is called when the node has caught up. With `errors_before`, a node may have told
        of errors until now.
        """
        cluster = self.cluster
        if errors_before:
            self.errors.clear()
        self.struck = False
        self.pass_time(0.2)
        for node_id, host in cluster.hosts.items():
            if not host.running:
                self.start(node_id)
        for broker_id in cluster.broker_hosts:
            cluster.start_broker(broker_id)
        self.until(self.caught_up, "the node has caught up")
        opened()
        self._load()
        before = cluster.admins.counts.acknowledged
        self.until(lambda: cluster.admins.counts.acknowledged > before + 4, "changes go on")
        facts = self._rest_and_judge()
        # And once more, in peace: what the first start left must be a good beginning too.
        self.host.kill()
        self.start(self.node_id)
        return facts + self._rest_and_judge()

    def _rest_and_judge(self) -> Counter[str]:
        cluster = self.cluster
        cluster.busy = False
        self.until(self._at_rest, "rest, and an orderly folder", REST_S)
        if cluster.stopped:
            self.fail(f"a node stopped itself: {cluster.stopped}")
        if self.errors:
            self.fail(f"a kill is no damage, but a node said: {self.errors[:3]}")
        for node_id, controller in cluster.running().items():
            status = controller.quorum.status()
            if status.note or status.role not in ("leader", "follower"):
                self.fail(f"node {node_id} is held back: {status.role}, {status.note}")
        # It keeps the log that it has read: one judgement, one log.
        cluster.judgement = Judgement(cluster)
        return cluster.invariants.at_the_end()

    def _at_rest(self) -> bool:
        return self.cluster.at_rest() and self.whole() and not leftovers(self.host.steps.root)

    def listening(self) -> Any:
        """Hear what the nodes that start meanwhile log."""
        return patched([(simulator, "quiet_log", lambda: _log(self._heard))])

    def _heard(self, level: str, event: dict[str, Any]) -> None:
        self.seen[event["event"]] += 1
        if level in ("error", "critical"):
            self.errors.append(str(event))


def leftovers(root: Path) -> list[str]:
    """Files that only a piece of work that is under way may have."""
    names = sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
    # The next manifest is written under the same name.
    parts = [name for name in names if name.endswith(".part") and name != "manifest.part"]
    return parts + [name for name in names if name.startswith("incoming/")]


def _log(heard: Callable[[str, dict[str, Any]], None]) -> Any:
    def hear(_logger: object, level: str, event: Any) -> Any:
        heard(level, event)
        raise structlog.DropEvent

    return structlog.wrap_logger(None, processors=[hear], wrapper_class=structlog.BoundLogger)
