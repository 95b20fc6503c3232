"""Says when a node's next tick is due.

Rule: a follower that hears its leader has little to do, and ticks half as often: but at the moment
at which it would begin a pre-vote.
"""

from quorum.guard.context import NodeContext
from quorum.guard.elections import Elections
from quorum.raft.core import Role


def next_tick_s(context: NodeContext, elections: Elections) -> float:
    """Return the seconds to the next tick."""
    core, tick_s = context.core, context.config.tick_s
    if core is None or core.role is not Role.FOLLOWER or not elections.leader_heard():
        return tick_s
    if context.journal.damage:
        return tick_s
    # The core's clock counts a pause of more than two ticks as a stall.
    due_s = elections.due_in_s()
    return min(2 * tick_s, due_s) if due_s > 0 else tick_s
