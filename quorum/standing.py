"""How a node stands, for people and metrics."""

from quorum.api import QuorumStatus, ReplicaState
from quorum.guard.ceiling import Ceiling
from quorum.guard.elections import Elections
from quorum.guard.handing_up import HandingUp
from quorum.guard.inside import Inside
from quorum.guard.jump import Jump
from quorum.guard.replicas import NEVER, Replica
from quorum.raft.core import Role
from quorum.terms import TERM_MAX


def standing(
    inside: Inside, elections: Elections, handing_up: HandingUp, jump: Jump, ceiling: Ceiling
) -> QuorumStatus:
    """Return a node's status."""
    core = inside.core
    leads = core is not None and core.role is Role.LEADER
    return QuorumStatus(
        node_id=inside.config.node_id,
        directory_id=inside.journal.directory_id,
        role=_role(inside),
        leader=elections.leader,
        epoch=inside.term,
        commit_index=core.commit_index if core is not None else 0,
        applied_index=handing_up.delivered_index,
        last_index=inside.view.last,
        durable_index=inside.view.durable,
        journal_bytes=inside.journal.size_bytes,
        replicas=tuple(_replica(inside, replica) for replica in inside.replicas) if leads else (),
        note=_note(inside, jump, ceiling),
        damages=len(inside.repairs) + bool(inside.journal.damage),
        repairs=tuple(inside.repairs),
        refused=tuple(sorted(inside.counters.items())),
    )


def _role(inside: Inside) -> str:
    if inside.formation.known and not inside.formation.we_vote:
        return "observer"
    if inside.journal.damage:
        return "damaged"
    return Role.FOLLOWER.name.lower() if inside.core is None else inside.core.role.name.lower()


def _replica(inside: Inside, replica: Replica) -> ReplicaState:
    answered_at = replica.answered_at
    return ReplicaState(
        node_id=replica.node_id,
        directory_id=replica.node.directory_id,
        match_index=replica.acked,
        last_contact_s=-1.0 if answered_at == NEVER else inside.now - answered_at,
        is_voter=replica.is_voter,
        wire_format=replica.wire_format if replica.linked else 0,
    )


def _note(inside: Inside, jump: Jump, ceiling: Ceiling) -> str:
    if inside.stopped:
        return "stopped"
    if inside.journal.damage:
        return f"does not vote until it has caught up: {inside.journal.damage}"
    if (shown := ceiling.shown) is not None:
        return (
            f"node {shown.node_id} is in epoch {shown.term}, too far above ours ({inside.term}) to "
            f"be believed at once; we take up to {ceiling.term}, and more step by step. If that "
            "node was not misled by forged frames, it is the one that forges"
        )
    if inside.term == TERM_MAX:
        return f"epoch {TERM_MAX} is the last one: there can be no further election"
    if not inside.formation.known:
        missing = sorted(
            {peer.node_id for peer in inside.config.peers}
            - {replica.node_id for replica in inside.replicas.linked()}
            - {inside.config.node_id}
        )
        return f"waits for every configured controller to form the quorum; not here: {missing}"
    if jump.pending is not None:
        return f"too far behind for entries: fetches what is behind index {jump.pending.index}"
    if not inside.formation.we_vote:
        return "observes: this folder is not among those the quorum was formed with"
    if inside.disk_is_stuck:
        return "the disk does not answer"
    if not inside.journal.has_room:
        return f"{inside.journal.lack_of_room}; it neither leads nor takes proposals"
    return ""
