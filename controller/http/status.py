"""The answers of `/v1/status`, `/v1/quorum` and `/health/ready`.

A node is ready if it can serve requests now. If it isn't, the answer says why.
"""

from collections.abc import Collection, Mapping

from controller.http.describe import count_states, readable_offset
from controller.leader.heartbeats import Heartbeats
from ledger.ledger import Ledger
from metadata.image import MetadataImage
from metadata.messages import HealthReply, QuorumMember, QuorumReply, RequestUnderWay, StatusReply
from metadata.state_hash import StateHash
from metadata.uuids import uuid_text
from quorum.api import QuorumStatus, VoterSet


def quorum_reply(
    cluster_id: str,
    status: QuorumStatus,
    quorums: VoterSet,
    urls: Mapping[int, str],
    high_watermark: int,
    standing: Collection[int] = (),
) -> QuorumReply:
    """Return the answer of `GET /v1/quorum`. `urls`: by node id. `standing`: observers by role."""
    known = {(r.node_id, r.directory_id): r for r in status.replicas}
    members = []
    for voter in sorted(quorums.voters, key=lambda v: v.node_id):
        replica = known.pop((voter.node_id, voter.directory_id), None)
        contact = None if replica is None else _milliseconds(replica.last_contact_s)
        members.append(
            QuorumMember(
                node_id=voter.node_id,
                directory_id=uuid_text(voter.directory_id),
                host=voter.host,
                port=voter.port,
                url=urls.get(voter.node_id),
                match_index=0 if replica is None else replica.match_index,
                last_contact_ms=contact,
                wire_format=0 if replica is None else replica.wire_format,
            )
        )
    members += [
        QuorumMember(
            node_id=replica.node_id,
            directory_id=uuid_text(replica.directory_id),
            url=urls.get(replica.node_id),
            is_voter=replica.is_voter,
            is_standing=replica.node_id in standing and not replica.is_voter,
            match_index=replica.match_index,
            last_contact_ms=_milliseconds(replica.last_contact_s),
            wire_format=replica.wire_format,
        )
        for _, replica in sorted(known.items())
    ]
    return QuorumReply(
        cluster_id=cluster_id,
        node_id=status.node_id,
        directory_id=uuid_text(status.directory_id),
        role=status.role,
        leader_id=status.leader,
        leader_epoch=status.epoch,
        leader_url=None if status.leader is None else urls.get(status.leader),
        high_watermark=high_watermark,
        commit_index=status.commit_index,
        applied_index=status.applied_index,
        last_index=status.last_index,
        durable_index=status.durable_index,
        journal_bytes=status.journal_bytes,
        members=tuple(members),
        note=status.note,
        voters_since=quorums.index,
        voters_committed=quorums.settled,
    )


def status_reply(
    *,
    cluster_id: str,
    version: str,
    status: QuorumStatus,
    active: bool,
    leader_url: str | None,
    image: MetadataImage,
    ledger: Ledger | None,
    heard: Heartbeats | None,
    newest_snapshot: str | None,
    repairs: tuple[str, ...],
    scrubbed_ms: int,
    uptime_s: float,
    note: str,
    history_from: int,
    requests: tuple[RequestUnderWay, ...],
    authorization: str,
    bootstrap_admin: str,
) -> StatusReply:
    """Return the answer of `GET /v1/status`."""
    state_hash = image.state_hash or StateHash()
    log_start = 0 if ledger is None else ledger.log_start
    return StatusReply(
        cluster_id=cluster_id,
        node_id=status.node_id,
        version=version,
        role=status.role,
        active=active,
        leader_id=status.leader,
        leader_epoch=status.epoch,
        leader_url=leader_url,
        log_start=log_start,
        log_end=0 if ledger is None else ledger.log_end,
        offset=readable_offset(image),
        epoch=image.epoch,
        timestamp_ms=image.timestamp_ms,
        chain_hash="" if ledger is None else ledger.head.hex(),
        state_hash=state_hash.shared_bytes().hex(),
        controllers_hash=state_hash.encode()[32:].hex(),
        brokers=count_states(image, heard),
        topics=len(image.topics.by_id),
        partitions=len(image.topics.partitions),
        leaderless=len(image.topics.leaderless),
        newest_snapshot=newest_snapshot,
        history_from=history_from,
        uptime_ms=int(uptime_s * 1000),
        note=note or status.note,
        repairs=(*status.repairs, *repairs),
        scrubbed_ms=scrubbed_ms,
        requests=requests,
        authorization=authorization,
        bootstrap_admin=bootstrap_admin,
    )


def readiness(
    *,
    stopped: str,
    diverged: str,
    loaded: bool,
    disk_full: str,
    status: QuorumStatus,
    active: bool,
    waits_for: str,
    image: MetadataImage,
) -> HealthReply:
    """Return the answer of `GET /health/ready`.

    `stopped`, `diverged`, `disk_full` and `waits_for` (a leader that does not begin): why, or
    empty.
    """
    reason = stopped or diverged or disk_full or status.note or waits_for
    if not reason and not loaded:
        reason = "the log is being loaded"
    if not reason and status.leader is None:
        reason = "no leader is known: perhaps no majority of the controllers is running"
    if not reason and status.role == "leader" and not active:
        reason = "it was elected, and the begin of its epoch is not committed yet"
    healthy = not reason
    if healthy:
        reason = "it leads" if status.role == "leader" else f"it follows controller {status.leader}"
    return HealthReply(
        healthy=healthy,
        reason=reason,
        role=status.role,
        offset=readable_offset(image),
        epoch=image.epoch,
    )


def _milliseconds(seconds: float) -> int | None:
    return None if seconds < 0 else int(seconds * 1000)
