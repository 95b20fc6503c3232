"""Who else must know at once when the journal's entries change.

Rule: the journal calls its watcher while the core is running. So a watcher notes what it hears, and
calls neither the core nor the journal.
"""

from typing import Protocol


class EntryWatcher(Protocol):
    """Hears of every change of the entries, in order."""

    def on_added(self, command: bytes, index: int) -> None:
        """An entry was appended."""

    def on_cut(self, index: int) -> None:
        """The entries from `index` on are void; 0: all are, and the core begins at a manifest."""

    def on_dropped(self, index: int) -> None:
        """The entries below `index` are forgotten: a manifest stands for them."""
