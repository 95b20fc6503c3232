"""A target: a parser, what it may raise, and bytes that it accepts."""

from collections.abc import Callable
from typing import NamedTuple


class FuzzTarget(NamedTuple):
    """One parser, or a few that read the same bytes."""

    name: str
    reads: str
    """What it reads, and from whom it comes."""
    read: Callable[[bytes], object]
    """Parse. What it asserts about the result must hold for any bytes."""
    refusals: tuple[type[Exception], ...]
    """What the parser may raise."""
    seeds: Callable[[], list[bytes]]
    """Bytes that the parser accepts."""
    repair: Callable[[bytes], bytes] | None = None
    """Makes damaged bytes consistent, so that they pass the first checks."""

    def accepts(self, data: bytes) -> bool:
        """Parse the bytes as they are. Returns False if they are refused; raises any finding."""
        try:
            self.read(data)
        except self.refusals:
            return False
        return True

    def feed(self, data: bytes) -> None:
        """Parse the bytes as they are, and repaired. Raises any finding."""
        self.accepts(data)
        if self.repair is not None:
            self.accepts(self.repair(data))
