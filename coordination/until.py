"""How long a call may take, and whether it lost a reply on its way.

Rule: a call has one `Until`, which goes down to every request of it. At its end, what was lost and
not found out is OutcomeUnknown.
"""

import asyncio
from dataclasses import dataclass

from coordination.errors import Unavailable


class ReplyLost(Exception):  # noqa: N818 - within backends; callers see OutcomeUnknown
    """A request was sent, and no reply came."""


@dataclass(slots=True)
class Until:
    """When a call must have ended, in the loop's seconds."""

    at: float
    lost: bool = False
    """A change was sent whose reply is lost, and nobody has found out yet what came of it."""

    @classmethod
    def after(cls, seconds: float) -> "Until":
        """From now."""
        return cls(asyncio.get_running_loop().time() + seconds)

    @property
    def left_s(self) -> float:
        return max(0.0, self.at - asyncio.get_running_loop().time())

    def check(self) -> None:
        """Raises Unavailable when the time is over."""
        if self.left_s <= 0:
            raise Unavailable("the store didn't answer in time")
