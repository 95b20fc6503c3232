"""Answers what clients ask beside changes and reads.

These are many changes in one request, parts of an import, the contacts of sessions, and watches of
coordination.
"""

from controller.http.call import Answers, Call
from controller.http.coordination.renewals import Renewals
from controller.http.coordination.watches import CoordinationWatches
from controller.http.imports.parts import PartKeeping
from controller.http.joined_changes import JoinedChanges
from controller.http.node_view import NodeView
from metadata.messages import (
    CoordinationWatchRequest,
    ImportPartRequest,
    JoinedChangesRequest,
    RenewSessionRequest,
)


def client_answers(
    node: NodeView,
    joined_changes: JoinedChanges,
    import_parts: PartKeeping,
    renewals: Renewals,
    coordination: CoordinationWatches,
) -> Answers:
    """Return the table."""

    def make_changes(call: Call) -> None:
        message: JoinedChangesRequest = call.message
        if node.leader.proposer.pending is None:
            raise node.not_here()
        joined_changes.handle(call, message)

    def keep_import_part(call: Call) -> None:
        message: ImportPartRequest = call.message
        import_parts.handle(call.request, message, call.answer)

    def renew_session(call: Call) -> None:
        message: RenewSessionRequest = call.message
        renewals.handle(call.request, message, call.answer)

    def watch_coordination(call: Call) -> None:
        message: CoordinationWatchRequest = call.message
        coordination.read(message, call.answer)

    return {
        "make_changes": make_changes,
        "keep_import_part": keep_import_part,
        "renew_session": renew_session,
        "watch_coordination": watch_coordination,
    }
