"""Holds requests after a stall, until a majority confirms that this controller leads.

While this process stood still for seconds, another controller may have been elected. That leader
counts the sessions of brokers from its own beginning. An answer from here would let a broker serve
on although the new leader fences it. A change that is proposed here is never committed, but its
caller could only be told that the outcome is unknown.
"""

from collections.abc import Callable


class LeadershipCheck:
    """Holds requests while it is not known whether this controller leads."""

    def __init__(self, read_index: Callable[[Callable[[bool], None]], None]) -> None:
        """`read_index` asks a majority whether this controller leads, and calls back."""
        self._read_index = read_index
        self._number = 0
        self._checking = False
        self._waiting: list[Callable[[], None]] = []

    def begin(self) -> None:
        """The process stalled, and leads as far as it knows: ask a majority."""
        self._checking = True
        self._number += 1
        number = self._number

        def on_ready(leads: bool) -> None:
            # After a later stall this confirmation is worthless; that stall asked again.
            if leads and number == self._number:
                self.end()

        self._read_index(on_ready)

    def end(self) -> None:
        """Leadership is confirmed or lost: let the held requests go on."""
        self._checking = False
        self._number += 1
        waiting, self._waiting = self._waiting, []
        for go_on in waiting:
            go_on()

    def holds(self, go_on: Callable[[], None]) -> bool:
        """Return whether a request must wait. If so, `go_on` is called once it need not."""
        if self._checking:
            self._waiting.append(go_on)
        return self._checking
