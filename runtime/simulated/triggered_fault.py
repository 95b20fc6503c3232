"""A triggered fault: it waits until a certain operation is under way, and then happens.

Rule: rare operations (a catch-up, a checkpoint being loaded) take milliseconds. Faults at random
times would miss them for thousands of seeds.
"""

from collections.abc import Callable, Mapping, Sequence

from runtime.simulated.fault_injector import FaultInjector

LOOK_EVERY_US = 4_000
LOOKS_MAX = 500
"""The fault is given up after so many looks, two seconds in all."""


class TriggeredFault:
    """Injects faults at operations that the cluster reports."""

    def __init__(
        self,
        injector: FaultInjector,
        acts: Mapping[str, Callable[[], None]],
        operations: Sequence[str],
    ) -> None:
        """`operations`: those to wait for. `acts`: the faults to draw from, by kind."""
        self._injector = injector
        self._known = acts
        self._kinds = sorted(acts)
        self._operations = operations
        self.acts: Mapping[str, Callable[[], None]] = {"ambush": self._wait_for_operation}

    def _wait_for_operation(self) -> None:
        dice = self._injector.dice
        if not self._operations:
            return
        wanted, kind = dice.choice(self._operations), dice.choice(self._kinds)
        delay_us = dice.choice((0, 0, dice.randrange(20_000)))
        self._injector.record(f"ambush: {kind} at {wanted}")
        self._look(wanted, kind, delay_us, LOOKS_MAX)

    def _look(self, wanted: str, kind: str, delay_us: int, looks: int) -> None:
        injector = self._injector
        if not injector.going or looks == 0:
            return
        found = [n for n in injector.nodes() if wanted in injector.under_way([n])]
        world = injector.world
        if found:
            victim = injector.dice.choice(found)
            world.schedule(delay_us, lambda: self._inject(kind, victim), None, "ambush")
        else:
            again = lambda: self._look(wanted, kind, delay_us, looks - 1)  # noqa: E731
            world.schedule(LOOK_EVERY_US, again, None, "ambush")

    def _inject(self, kind: str, victim: int) -> None:
        injector = self._injector
        if injector.going:
            injector.aim = victim
            injector.kind = kind
            self._known[kind]()
            injector.aim = None
