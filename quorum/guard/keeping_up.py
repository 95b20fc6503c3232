"""Who keeps up with a leader: whom it may count on a moment from now.

Rule: a replica keeps up if it has held, for a whole election timeout E, everything that was
committed one E before. While changes follow one another a sound replica lacks the newest entries at
almost every moment, so "it holds everything now" would refuse it. It needs one round trip to catch
up once nothing more is proposed (`quorum.guard.voter_changes.may_begin`).
"""

from collections import deque

from quorum.guard.context import NodeContext
from quorum.guard.replicas import PeerReplica


class KeepingUp:
    """What a leader knows of it. Idle while we don't lead."""

    def __init__(self, context: NodeContext) -> None:
        self._context = context
        self._term = -1
        self._commits: deque[tuple[float, int]] = deque()
        """When, and what was committed: the newest that is older than E, and all since."""
        self._since: dict[tuple[int, bytes], float] = {}
        """Since when a replica has kept up, by its identity."""

    def on_tick(self) -> None:
        """Look at every linked replica. Called while we lead."""
        context, core = self._context, self._context.core
        assert core is not None
        if self._term != context.term:
            self._term = context.term
            self._commits.clear()
            self._since.clear()
        now, commits = context.now, self._commits
        commits.append((now, core.commit_index))
        ago = now - context.config.election_timeout_s
        while len(commits) > 1 and commits[1][0] <= ago:
            commits.popleft()
        at, committed = commits[0]
        self._since = {
            replica.identity: self._since.get(replica.identity, now)
            for replica in context.replicas.linked()
            if at <= ago and replica.acked >= committed
        }

    def does(self, replica: PeerReplica) -> bool:
        """Tell whether a replica keeps up."""
        since = self._since.get(replica.identity)
        context = self._context
        return (
            since is not None
            and replica.linked
            and self._term == context.term
            and context.now - since >= context.config.election_timeout_s
        )
