"""Makes the steps of a bridge: while ZooKeeper leads, this cluster follows.

Rule: a step names the zxid at which the last one ended, and the controllers refuse another one. So
a bridge that is started again begins with all that differs, and a second bridge is refused.
"""

from collections.abc import Callable
from typing import Final, Protocol

from logberg.bridge.live_tree import LiveTree, LostConnectionError
from logberg.bridge.source_state import SourceState, SourceStep, source_state, step_between
from logberg.importing.source_error import SourceError
from logberg.importing.znodes import ZnodeTree
from metadata.messages.bridge import DescribeBridgeReply, FollowSourceReply, LegacyBroker

_WAIT_S: Final = 0.2
"""How long one waits for a change before one looks whether to stop."""
_CONFLICTS_SHOWN: Final = 20


class BridgedQuorum(Protocol):
    """The controllers, as the bridge asks them. Both raise Failure."""

    def described(self) -> DescribeBridgeReply:
        """Return how far the bridge has come."""
        ...

    def follow(self, state: SourceState, from_revision: int, step: SourceStep) -> FollowSourceReply:
        """Make a step."""
        ...


class Follower:
    """Brings one change of the source after another."""

    def __init__(self, tree: LiveTree, quorum: BridgedQuorum, say: Callable[[str], None]) -> None:
        """`say` gets a line for each step."""
        self._tree = tree
        self._quorum = quorum
        self._say = say
        self._before: SourceState | None = None
        self.reached = -1
        """The zxid of the last step."""

    def begin(self) -> None:
        """Make the first step, from where the last bridge ended. Raises SourceError, Failure."""
        known = self._quorum.described()
        if known.mode not in ("none", "following"):
            raise SourceError(f"the bridge to {known.source} is {known.mode}: this cluster leads")
        self.reached = known.revision if known.mode == "following" else -1
        self._step(*self._tree.settled())

    @property
    def brokers(self) -> tuple[LegacyBroker, ...]:
        """Those that are registered with the source."""
        return () if self._before is None else self._before.brokers

    def catch_up(self) -> None:
        """Bring what has changed since the last step. Raises SourceError, Failure."""
        self._step(*self._tree.settled())

    def run_once(self) -> None:
        """Wait for a change for a moment, and bring it. Raises SourceError, Failure."""
        if self._tree.wait(_WAIT_S):
            try:
                self.catch_up()
            except LostConnectionError as error:
                self._say(f"{error}; waiting for the source")

    def _step(self, tree: ZnodeTree, zxid: int) -> None:
        after = source_state(tree, max(zxid, self.reached))
        step = step_between(self._before, after)
        if not step:
            return
        reply = self._quorum.follow(after, self.reached, step)
        if reply.conflict_count:
            shown = "; ".join(f"{c.name}: {c.why}" for c in reply.conflicts[:_CONFLICTS_SHOWN])
            raise SourceError(f"{reply.conflict_count} things can't be followed: {shown}")
        self._before, self.reached = after, reply.revision
        registered = ", ".join(str(each.broker_id) for each in after.brokers) or "none"
        self._say(
            f"zxid {reply.revision}: {reply.changed} records (offset {reply.offset}); "
            f"{len(after.topics)} topics, legacy brokers {registered}"
        )
