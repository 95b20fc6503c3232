"""Replies about the controllers: `GET /v1/quorum`, `GET /v1/status`, `GET /health/...`."""

from enum import StrEnum
from typing import Annotated, Any

from msgspec import Meta

from metadata.messages.message import Count, ReplyMessage, RequestMessage


class QuorumMember(ReplyMessage, frozen=True):
    """One controller, as the answering node knows it."""

    node_id: int
    directory_id: str
    host: str = ""
    port: int = 0
    url: str | None = None
    is_voter: bool = True
    is_standing: bool = False
    """Whether it is a standing observer: by its role in the answering node's file it votes only
    once somebody promotes it."""
    match_index: int = 0
    """The highest journal index that is known to be durable there; 0: unknown."""
    last_contact_ms: int | None = None
    """Milliseconds since its last answer; None: no answer in this epoch, or the answering node
    does not lead."""
    wire_format: int = 0
    """The wire format of the leader's link with it: 1 with release 0.1; 0: unknown, or no link."""


class QuorumReply(ReplyMessage, frozen=True):
    """The quorum (Kafka's DescribeQuorum)."""

    cluster_id: str
    node_id: int
    directory_id: str
    role: str
    """leader, follower, candidate, observer or damaged."""
    leader_id: int | None
    leader_epoch: int
    leader_url: str | None
    high_watermark: int
    commit_index: int
    applied_index: int
    last_index: int
    durable_index: int
    journal_bytes: int
    members: tuple[QuorumMember, ...]
    note: str = ""
    """Why the node does not take part in the quorum as usual, as a sentence; empty: it does."""
    voters_since: Count = 0
    """The journal index of the entry that names the voters; 0: the first start did."""
    voters_committed: bool = True
    """Whether the answering node knows that entry to be committed, so that it can't be undone."""


class VoterAction(StrEnum):
    """What to do with a voter."""

    ADD = "add"
    REMOVE = "remove"
    PROMOTE = "promote"
    """As add, also for a standing observer."""
    MOVE = "move"
    """Only its address changes."""


class ChangeVotersRequest(RequestMessage, frozen=True):
    """Add one voter to the quorum, remove one, or say where one listens from now on (KIP-853)."""

    action: VoterAction
    node_id: Annotated[int, Meta(ge=0, le=2**31 - 1)]
    directory_id: Annotated[str, Meta(max_length=36)] = ""
    """Of the folder that votes, as `GET /v1/quorum` shows it; empty: the one that the node has."""
    host: Annotated[str, Meta(max_length=255)] = ""
    """Where the node listens for controllers. To add, empty: as the leader's configuration says."""
    port: Annotated[int, Meta(ge=0, le=65535)] = 0
    dry_run: bool = False


class VoterDescription(ReplyMessage, frozen=True):
    """A voter, and where it listens for controllers."""

    node_id: int
    directory_id: str
    host: str
    port: int


class ChangeVotersReply(ReplyMessage, frozen=True):
    """The voters from now on."""

    voters: tuple[VoterDescription, ...]
    offset: int = -1
    epoch: int = -1
    request_id: str | None = None
    dry_run: bool = False
    records: tuple[dict[str, Any], ...] = ()


class TransferLeadershipRequest(RequestMessage, frozen=True):
    """Let another voter lead."""

    node_id: Annotated[int, Meta(ge=0, le=2**31 - 1)]


class TransferLeadershipReply(ReplyMessage, frozen=True):
    """The leader has begun to hand over, or leads itself as it was asked to."""

    node_id: int
    leader_epoch: int
    """Of the leader that answers; the next one has a higher one."""


class RequestUnderWay(ReplyMessage, frozen=True):
    """A request that is written in rounds, some of which are in the log."""

    operation: str
    request_id: str
    done: Count
    """Topics or partitions that the rounds in the log decided about."""
    total: Count
    """Of the whole request."""


class StatusReply(ReplyMessage, frozen=True):
    """The state of one controller, and of the cluster in its image."""

    cluster_id: str
    node_id: int
    version: str
    """The software's version."""
    role: str
    active: bool
    """Whether it leads and has begun its epoch."""
    leader_id: int | None
    leader_epoch: int
    leader_url: str | None
    log_start: int
    log_end: int
    """The ledger's end: the node has all records before it, and they are committed."""
    offset: int
    """The image's offset."""
    epoch: int
    """The epoch of the image's last batch."""
    timestamp_ms: int
    """The timestamp of the image's last batch, in ms since 1970."""
    chain_hash: str
    """At `log_end`, in hexadecimal digits, as are the next two."""
    state_hash: str
    controllers_hash: str
    brokers: dict[str, int]
    """How many brokers are in each state: offline, fenced, online, stopping."""
    topics: int
    partitions: int
    leaderless: int
    newest_snapshot: str | None = None
    history_from: int = 0
    """The first offset that the node has, while it fetches older history or misses it."""
    uptime_ms: int = 0
    note: str = ""
    """What is wrong, as a sentence; empty: nothing."""
    repairs: tuple[str, ...] = ()
    """The newest damages that the node found since its start, and its repairs."""
    scrubbed_ms: int = 0
    """When the node last read all closed files and found them sound, in ms since 1970; 0: not
    yet."""
    requests: tuple[RequestUnderWay, ...] = ()
    """Requests that are written in rounds now; only the active controller knows them."""
    authorization: str = ""
    """This controller's setting: off, log-only or on; empty: the node is older than the setting."""
    bootstrap_admin: str = ""
    """The administrator of the first start, while it is a super user and nobody said to keep it."""


class HealthReply(ReplyMessage, frozen=True):
    """The answer of `GET /health/live` (the process runs) and `GET /health/ready` (it serves)."""

    healthy: bool
    reason: str
    """Why it is healthy or not, as a sentence."""
    role: str = ""
    offset: int = -1
    epoch: int = -1


class UnregisterControllerReply(ReplyMessage, frozen=True):
    """The controller's registration is forgotten."""

    controller_id: int
    offset: int = -1
    epoch: int = -1
    request_id: str | None = None
    dry_run: bool = False
    records: tuple[dict[str, Any], ...] = ()
