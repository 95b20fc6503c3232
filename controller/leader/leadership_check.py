"""After a stall of our own we don't know that we still lead.

Rule: a broker's request is answered only by a leader whose last stall a majority has outlived: who
stood still for seconds may have been replaced, and its successor counts the sessions of brokers
from its own beginning. An answer from us would let a broker serve on that the successor fences.
"""

from collections.abc import Callable


class LeadershipCheck:
    """Holds requests back while it is not known whether we lead."""

    def __init__(self, read_index: Callable[[Callable[[bool], None]], None]) -> None:
        """`read_index` tells, by a majority asked after the call, whether we lead."""
        self._read_index = read_index
        self._number = 0
        self._checking = False
        self._waiting: list[Callable[[], None]] = []

    def begin(self) -> None:
        """We stood still, and lead as far as we know: ask."""
        self._checking = True
        self._number += 1
        number = self._number

        def on_ready(leads: bool) -> None:
            # What was confirmed before a later stall says nothing about it.
            if leads and number == self._number:
                self.end()

        self._read_index(on_ready)

    def end(self) -> None:
        """It is known: we lead, or we lost it."""
        self._checking = False
        self._number += 1
        waiting, self._waiting = self._waiting, []
        for go_on in waiting:
            go_on()

    def holds(self, go_on: Callable[[], None]) -> bool:
        """Tell whether a request must wait; `go_on` is called when it need not any more."""
        if self._checking:
            self._waiting.append(go_on)
        return self._checking
