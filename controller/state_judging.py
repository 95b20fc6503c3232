"""Decides whether this controller's state may be served.

Rule: a state that differs from that of the other controllers is not served, and a controller that
has it leads nobody. The same holds for a log that is not the one whose head this controller signed.
The reason stands in `NodeCondition.diverged`.
"""

from structlog.typing import FilteringBoundLogger

from controller.http.node_view import NodeView
from controller.storage.damage import STATE
from quorum.api import Quorum


class StateJudge:
    """Judges the state of one controller."""

    def __init__(self, view: NodeView, quorum: Quorum, log: FilteringBoundLogger) -> None:
        self._view = view
        self._condition = view.condition
        self._quorum = quorum
        self._log = log

    def contradicted(self, why: str) -> None:
        """Our log is not the one whose head we signed: serve nothing of it, and lead nobody."""
        self._condition.diverged = why
        self._quorum.resign(why)

    def judge(self) -> None:
        """Compare our state with the other controllers'. If ours is wrong, stop serving it."""
        view, condition = self._view, self._condition
        if view.signing is not None and view.signing.contradiction:
            return  # it is refused already, for a reason that no digest takes back
        digests, storage = view.replica.digests, view.storage
        verdict = digests.verdict(view.voters())
        if verdict == condition.diverged:
            return
        if verdict and not condition.diverged:
            storage.damage.found(STATE, verdict)
        condition.diverged = verdict
        if verdict:
            self._log.critical("state_diverged", reason=verdict)
            if digests.wrong:
                storage.snapshotting.distrust(digests.agreed_at)
            if view.leader.proposer.pending is not None:
                self._quorum.resign(verdict)
        else:
            self._log.warning("state_agrees_again")
