"""Targeted faults: each waits for one operation, and happens while it is in progress.

Rule: it checks after every event, so it also finds operations that last less than a millisecond.
The caller chooses the pairs of fault and operation, for example by the seed's number. Then a number
of runs equal to the number of pairs covers all pairs, and none depends on luck.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from runtime.simulated.fault_injector import FaultInjector
from runtime.simulated.world import US, Process

Pair = tuple[str, str]
"""A fault, and the operation that it waits for."""
PATIENCE_S = 2.5
"""How long it waits for one pair before it takes the next one."""


class TargetedFaults:
    """Waits for its pairs in turn, as long as the nemesis injects faults.

    Every pair is injected once before any is injected again.
    """

    def __init__(
        self,
        injector: FaultInjector,
        acts: Mapping[str, Callable[[], None]],
        pairs: Sequence[Pair],
        ready: Callable[[str, int], bool],
    ) -> None:
        """`ready` tells whether a kind of fault can hit a node now."""
        self._injector = injector
        self._acts = acts
        self._every = tuple(pairs)
        self._left = deque(pairs)
        """The pairs that are still to be injected in this round."""
        self._ready = ready
        self._wanted: Pair | None = None
        self._turn = 0

    def start(self) -> None:
        """Begin to wait for the first pair at once, since its operation may be a node's start."""
        if self._every:
            self._injector.world.after_event(self._look)
            self._next()

    def _next(self) -> None:
        if self._injector.going:
            self._turn += 1
            self._wanted = self._left[0]
            self._left.rotate(-1)
            give_up = partial(self._give_up, self._turn)
            self._injector.world.schedule(int(PATIENCE_S * US), give_up, None, "hunt")

    def _give_up(self, turn: int) -> None:
        if self._wanted is not None and turn == self._turn:
            self._next()

    def _look(self, process: Process | None) -> None:
        if self._wanted is None or process is None or not self._injector.going:
            return
        node_id, (fault, operation) = process.node_id, self._wanted
        if node_id not in self._injector.cluster.hosts:
            return
        if operation in self._injector.under_way([node_id]) and self._ready(fault, node_id):
            self._wanted = None
            self._injector.world.schedule(
                0, partial(self._inject, fault, operation, node_id), None, "hunt"
            )

    def _inject(self, fault: str, operation: str, node_id: int) -> None:
        injector = self._injector
        if not injector.going:
            return
        injector.record(f"hunt: {fault} at {operation}")
        self._left.remove((fault, operation))
        self._left.extend(self._every if not self._left else ())
        injector.aim, injector.kind = node_id, fault
        self._acts[fault]()
        injector.aim = None
        low, high = injector.fault_schedule.gap_s
        injector.world.schedule(
            int(injector.dice.uniform(low, high) * US), self._next, None, "hunt"
        )
