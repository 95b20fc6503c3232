"""An ambush: a fault that waits until a certain operation is under way, and hits it there.

Rule: rare operations (a jump, a checkpoint being loaded) are over in milliseconds; faults that
strike at drawn times would miss them for thousands of seeds.
"""

from collections.abc import Callable, Mapping, Sequence

from runtime.simulated.strikes import Strikes

LOOK_EVERY_US = 4_000
LOOKS_MAX = 500
"""Two seconds; then the ambush is given up."""


class Ambush:
    """Lies in wait for operations that the cluster tells of."""

    def __init__(
        self, strikes: Strikes, acts: Mapping[str, Callable[[], None]], prey: Sequence[str]
    ) -> None:
        """`prey` are the operations that are waited for, `acts` what may strike them."""
        self._strikes = strikes
        self._known = acts
        self._kinds = sorted(acts)
        self._prey = prey
        self.acts: Mapping[str, Callable[[], None]] = {"ambush": self._lie_in_wait}

    def _lie_in_wait(self) -> None:
        dice = self._strikes.dice
        if not self._prey:
            return
        wanted, kind = dice.choice(self._prey), dice.choice(self._kinds)
        delay_us = dice.choice((0, 0, dice.randrange(20_000)))
        self._strikes.record(f"ambush: {kind} at {wanted}")
        self._look(wanted, kind, delay_us, LOOKS_MAX)

    def _look(self, wanted: str, kind: str, delay_us: int, looks: int) -> None:
        strikes = self._strikes
        if not strikes.going or looks == 0:
            return
        found = [n for n in strikes.nodes() if wanted in strikes.under_way([n])]
        world = strikes.world
        if found:
            victim = strikes.dice.choice(found)
            world.schedule(delay_us, lambda: self._pounce(kind, victim), None, "ambush")
        else:
            again = lambda: self._look(wanted, kind, delay_us, looks - 1)  # noqa: E731
            world.schedule(LOOK_EVERY_US, again, None, "ambush")

    def _pounce(self, kind: str, victim: int) -> None:
        strikes = self._strikes
        if strikes.going:
            strikes.aim = victim
            strikes.kind = kind
            self._known[kind]()
            strikes.aim = None
