"""A limit on the memory of all unfinished requests and handshakes together.

Rule: the held bytes never exceed the budget. When the budget is used up, the caller that holds the
most loses a claim to a caller that holds less. Within one caller, the largest body loses to one of
at most half its size. So a caller that fills the budget is refused itself, and others are not.
"""

from collections.abc import Callable

BODIES_AND_HANDSHAKES_MAX = 24 * 1024 * 1024
"""The default budget. A flood makes the process grow by about 1.6 times as much, because the
buffers of connections are not counted."""


class ByteClaim:
    """The bytes that one body or one handshake holds."""

    __slots__ = ("_budget", "caller", "give_way", "held")

    def __init__(
        self, budget: "ByteBudget", caller: str, give_way: Callable[[], None] | None
    ) -> None:
        self._budget = budget
        self.caller = caller
        self.give_way = give_way
        """Called when the claim must free its memory soon; None: this claim is never chosen."""
        self.held = 0

    def grow(self, size: int) -> bool:
        """Hold `size` bytes more; False: the budget doesn't allow it, and nothing changes."""
        return self._budget.grow(self, size)

    def close(self) -> None:
        """Give back all bytes."""
        self._budget.release(self)


class ByteBudget:
    """Counts the bytes held by claims."""

    def __init__(
        self,
        bytes_max: int = BODIES_AND_HANDSHAKES_MAX,
        on_freed: Callable[[int], None] = lambda _: None,
    ) -> None:
        """`on_freed` is called with the number of bytes that a claim gives back."""
        self.bytes_max = bytes_max
        self._on_freed = on_freed
        self.used = 0
        self.peak = 0
        self._claims: dict[ByteClaim, None] = {}

    def claim(self, caller: str, give_way: Callable[[], None] | None = None) -> ByteClaim:
        """Open a claim that holds nothing yet."""
        return ByteClaim(self, caller, give_way)

    def grow(self, claim: ByteClaim, size: int) -> bool:
        """Let `claim` hold `size` bytes more if they are free or another claim gives way."""
        while self.used + size > self.bytes_max:
            victim = self._victim(claim, size)
            if victim is None:
                return False
            self.release(victim)
            assert victim.give_way is not None
            victim.give_way()
        self.used += size
        self.peak = max(self.peak, self.used)
        claim.held += size
        self._claims[claim] = None
        return True

    def release(self, claim: ByteClaim) -> None:
        """Give back all that `claim` holds."""
        if self._claims.pop(claim, 0) is None:
            self.used -= claim.held
            self._on_freed(claim.held)
            claim.held = 0

    def _victim(self, claim: ByteClaim, size: int) -> ByteClaim | None:
        """Return the claim that must give way to `claim`; None: no claim must.

        It is the largest claim of the caller that holds the most, under the rule above.
        """
        totals: dict[str, int] = {claim.caller: size}
        for other in self._claims:
            totals[other.caller] = totals.get(other.caller, 0) + other.held
        movable = [other for other in self._claims if other.give_way is not None]
        largest = max(movable, key=lambda other: (totals[other.caller], other.held), default=None)
        if largest is None:
            return None
        if largest.caller == claim.caller:
            return largest if largest.held >= 2 * (claim.held + size) else None
        return largest if totals[largest.caller] > totals[claim.caller] else None
