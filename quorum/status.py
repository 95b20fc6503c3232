"""The status of a node, for people and metrics."""

from quorum.api import QuorumStatus, ReplicaState
from quorum.guard.context import NodeContext
from quorum.guard.guard import Guard
from quorum.guard.replicas import NEVER, PeerReplica
from quorum.raft.core import Role
from quorum.terms import TERM_MAX


def node_status(context: NodeContext, guard: Guard) -> QuorumStatus:
    """Return a node's status."""
    core = context.core
    leads = core is not None and core.role is Role.LEADER
    return QuorumStatus(
        node_id=context.config.node_id,
        directory_id=context.journal.directory_id,
        role=_role(context),
        leader=guard.elections.leader,
        epoch=context.term,
        commit_index=core.commit_index if core is not None else 0,
        applied_index=guard.delivery.delivered_index,
        last_index=context.view.last,
        durable_index=context.view.durable,
        journal_bytes=context.journal.size_bytes,
        replicas=tuple(_replica(context, replica) for replica in context.replicas) if leads else (),
        note=_note(context, guard),
        damages=len(context.repairs) + bool(context.journal.damage),
        repairs=tuple(context.repairs),
        refused=tuple(sorted(context.counters.items())),
    )


def _role(context: NodeContext) -> str:
    if context.voters.known and not context.voters.we_vote:
        return "observer"
    if context.journal.damage:
        return "damaged"
    return Role.FOLLOWER.name.lower() if context.core is None else context.core.role.name.lower()


def _replica(context: NodeContext, replica: PeerReplica) -> ReplicaState:
    answered_at = replica.answered_at
    return ReplicaState(
        node_id=replica.node_id,
        directory_id=replica.node.directory_id,
        match_index=replica.acked,
        last_contact_s=-1.0 if answered_at == NEVER else context.now - answered_at,
        is_voter=replica.is_voter,
        wire_format=replica.wire_format if replica.linked else 0,
    )


def _note(context: NodeContext, guard: Guard) -> str:
    if context.stopped:
        return "stopped"
    if context.journal.damage:
        return f"does not vote until it has caught up: {context.journal.damage}"
    if (shown := guard.ceiling.shown) is not None:
        return (
            f"node {shown.node_id} is in epoch {shown.term}, too far above ours ({context.term}) "
            f"to accept at once. We accept epochs up to {guard.ceiling.term} now, and higher ones "
            "step by step. Either that node received forged frames, or it sends them"
        )
    if context.term == TERM_MAX:
        return f"epoch {TERM_MAX} is the last one: there can be no further election"
    if not context.voters.known:
        missing = sorted(
            {peer.node_id for peer in context.config.peers}
            - {replica.node_id for replica in context.replicas.linked()}
            - {context.config.node_id}
        )
        return f"waits for every configured controller to form the quorum; not here: {missing}"
    if guard.catch_up.pending is not None:
        return (
            f"too far behind for entries: fetches files up to index {guard.catch_up.pending.index}"
        )
    if not context.voters.we_vote:
        return _why_it_observes(context)
    if context.disk_is_stuck:
        return "the disk does not answer"
    if lack := context.journal.lack_of_room:
        return f"{lack}; it neither leads nor takes proposals"
    return ""


def _why_it_observes(context: NodeContext) -> str:
    if context.voters.have_changed:
        index = context.voters.newest.index
        return f"observes: this folder is not among the voters since entry {index}"
    return "observes: the quorum was not formed with this folder, so it does not vote"
