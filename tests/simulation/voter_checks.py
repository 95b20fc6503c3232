"""What must hold of the voters of every node's log, after every event.

V1: nobody leads who is not in its own newest set. V2: neighbouring sets differ by one member, or by
the address of one.
"""

from collections import Counter
from itertools import pairwise
from typing import Any

from quorum.membership.voter_addresses import moved
from quorum.membership.voter_history import VotersAt
from quorum.raft.core import Role
from runtime.simulated.world import World


class VoterChecks:
    """Looks at nodes, and counts the sets that it saw."""

    def __init__(self, world: World, facts: Counter[str]) -> None:
        self._world = world
        self._facts = facts
        self._seen: dict[int, tuple[int, int]] = {}
        """Of each node: since which entry its newest set is in force, and how large it is."""

    def look(self, node_id: int, context: Any) -> None:
        """Check one node. `context`: its `quorum.guard.context`; None before it has started."""
        if context is None or context.core is None or not context.voters.known:
            return
        voters = context.voters
        if context.core.role is Role.LEADER and not voters.we_vote:
            self._world.fail("V1: it leads, and its log does not name it", node_id)
        newest = voters.newest
        seen = (newest.index, len(newest.members))
        if self._seen.get(node_id) == seen:
            return
        self._seen[node_id] = seen
        self._facts[f"seen with {len(newest.members)} voters"] += 1
        for one, other in pairwise(voters.unsettled(0)):
            if not _are_neighbours(one, other):
                what = f"V2: the voters of entries {one.index} and {other.index} are not neighbours"
                self._world.fail(what, node_id)


def _are_neighbours(one: VotersAt, other: VotersAt) -> bool:
    differ = len(one.members.items() ^ other.members.items())
    # Before the first entry with voters no log names an address.
    count = len(moved(other.voters, one.voters)) if one.named else 0
    return differ == 1 or (not differ and count <= 1)


def may_wipe(contexts: list[Any], nodes: int) -> bool:
    """Tell whether the loss of one voter's folder is survived, whatever happens next.

    Only while all nodes run and agree on a committed set of at least three, none of which has lost
    its directory. `contexts`: of the nodes that run.
    """
    if len(contexts) < nodes:
        return False
    sets = set()
    for context in contexts:
        newest = context.voters.newest
        if context.core is None or newest.index > context.core.commit_index:
            return False
        sets.add((newest.index, tuple(sorted(newest.members.items()))))
    if len(sets) > 1:
        return False
    _, members = sets.pop()
    directories = {directory_id for _, directory_id in members}
    there = {context.journal.directory_id for context in contexts}
    return len(members) >= 3 and directories <= there
