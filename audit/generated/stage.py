"""Where the made-up cluster's life takes place: what time it is, what comes next, who leads.

Rule: everything that happens is due at a time, and at equal times in the order in which it was
planned. What happens writes through the stage, so its time is the log's.
"""

import heapq
from collections.abc import Callable, Sequence

from audit.generated.dice import Dice
from audit.generated.model import Cluster, Partition
from audit.generated.pen import Pen, Written
from audit.generated.people import Actor
from audit.generated.rhythm import moment
from metadata.records import NO_LEADER, BeginEpochRecord, EpochVoter, Record

Then = Callable[[], None]
"""What goes on when something is over."""


class Stage:
    """The clock, the plan, the cluster and the pen."""

    def __init__(self, seed: int, cluster_id: str, start_ms: int) -> None:
        self.dice = Dice(seed, "history")
        self.pen = Pen(Dice(seed, "requests"), cluster_id)
        self.cluster = Cluster(self._leader_changed)
        self.now_ms = start_ms
        self.controller = 1
        """Which controller leads."""
        self.software = 25
        """The highest metadata.version that brokers support, as deployed."""
        self.voters = tuple(EpochVoter(n, self.dice.uuid()) for n in (1, 2, 3))
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        self._planned = 0

    def begin_epoch(self) -> BeginEpochRecord:
        """Return what the controller that leads now writes first."""
        return BeginEpochRecord(self.controller, self.voters, ())

    def after(self, delay_ms: int, happens: Callable[[], None]) -> None:
        """Plan something."""
        self._planned += 1
        heapq.heappush(self._due, (self.now_ms + delay_ms, self._planned, happens))

    def next_ms(self) -> int | None:
        """When the next planned thing is due."""
        return self._due[0][0] if self._due else None

    def go_on(self) -> None:
        """Let the next planned thing happen."""
        due_ms, _, happens = heapq.heappop(self._due)
        self.now_ms = max(self.now_ms, due_ms)
        happens()

    def write(
        self, actor: Actor, operation: str, records: Sequence[Record], reason: str = ""
    ) -> Written:
        """Write now what the cluster does itself."""
        return self.pen.write(self.now_ms, actor, operation, records, reason)

    def answer(
        self,
        actor: Actor,
        operation: str,
        records: Sequence[Record],
        reason: str = "",
        pieces: int = 1,
    ) -> Written:
        """Write now what a request asks for."""
        return self.pen.answer(self.now_ms, actor, operation, records, reason, pieces)

    def tell_since(
        self,
        kind: str,
        subject: str,
        offset: int,
        time_ms: int,
        principal: str,
        sentence: str = "",
    ) -> None:
        """Note a fact that began earlier and ends now."""
        end = self.pen.offset
        since = Written(offset, offset, time_ms, offset, time_ms)
        end_ms = self.pen.mark.timestamp_ms
        until = Written(end, end, end_ms, end, end_ms)
        self.pen.tell(kind, subject, since, principal, sentence, until)

    def teller(self, kind: str, subject: str, principal: str, sentence: str) -> Then:
        """Return what tells of an episode that begins now, once it is over."""
        offset, time_ms = self.pen.offset, self.now_ms
        said = f"{moment(time_ms)}: {sentence}"
        return lambda: self.tell_since(kind, subject, offset, time_ms, principal, said)

    def _leader_changed(self, partition: Partition, before: int, after: int) -> None:
        self.pen.leader_changed(partition.key, lost=after == NO_LEADER)


def nothing() -> None:
    """What follows nothing."""
