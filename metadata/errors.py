"""The errors that a caller sees: a code, whose fault it is, and whether to try again.

Rule: an error that Kafka has too has Kafka's name and meaning. Every code has a sentence that tells
the caller what to do. A caller who has never read our code must understand it. The message of an
error adds the particulars.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple


class Fault(StrEnum):
    """Who has to act."""

    CLIENT = "client"
    """The client: the same request will fail again."""
    SERVER = "server"
    """The operator of this node: the node is broken, or its disk is full."""
    CLUSTER = "cluster"
    """Nobody yet: the cluster's state doesn't allow it now, often only for a moment."""


class ErrorFacts(NamedTuple):
    """What holds for every error with one code."""

    status: int
    """The HTTP status."""
    fault: Fault
    retriable: bool
    """Whether the same request to the same cluster may succeed later, without a change by hand."""
    advice: str
    """What to do, as a sentence."""


class ErrorCode(StrEnum):
    """Every code. Replies carry its name."""

    # Who leads, and whether there is a quorum.
    NOT_CONTROLLER = "NOT_CONTROLLER"
    NO_QUORUM = "NO_QUORUM"
    STATE_DIVERGED = "STATE_DIVERGED"
    REQUEST_TIMED_OUT = "REQUEST_TIMED_OUT"
    UNKNOWN_SERVER_ERROR = "UNKNOWN_SERVER_ERROR"
    SHUTTING_DOWN = "SHUTTING_DOWN"
    # Who asks.
    UNAUTHENTICATED = "UNAUTHENTICATED"
    CLUSTER_AUTHORIZATION_FAILED = "CLUSTER_AUTHORIZATION_FAILED"
    TOPIC_AUTHORIZATION_FAILED = "TOPIC_AUTHORIZATION_FAILED"
    # The shape of a request.
    INVALID_REQUEST = "INVALID_REQUEST"
    MALFORMED_BODY = "MALFORMED_BODY"
    BODY_TOO_LARGE = "BODY_TOO_LARGE"
    BODY_TIMED_OUT = "BODY_TIMED_OUT"
    UNSUPPORTED_MEDIA_TYPE = "UNSUPPORTED_MEDIA_TYPE"
    NOT_FOUND = "NOT_FOUND"
    METHOD_NOT_ALLOWED = "METHOD_NOT_ALLOWED"
    # Who votes.
    VOTERS_NOT_READY = "VOTERS_NOT_READY"
    # Requests that are sent again.
    REQUEST_EXPIRED = "REQUEST_EXPIRED"
    REQUEST_FROM_FUTURE = "REQUEST_FROM_FUTURE"
    REQUEST_ID_REUSED = "REQUEST_ID_REUSED"
    # Brokers.
    STALE_EXPECTED_OFFSET = "STALE_EXPECTED_OFFSET"
    INCONSISTENT_CLUSTER_ID = "INCONSISTENT_CLUSTER_ID"
    STALE_BROKER_EPOCH = "STALE_BROKER_EPOCH"
    DUPLICATE_BROKER_REGISTRATION = "DUPLICATE_BROKER_REGISTRATION"
    BROKER_ID_NOT_REGISTERED = "BROKER_ID_NOT_REGISTERED"
    INVALID_REGISTRATION = "INVALID_REGISTRATION"
    UNSUPPORTED_VERSION = "UNSUPPORTED_VERSION"
    INVALID_UPDATE_VERSION = "INVALID_UPDATE_VERSION"
    FEATURE_UPDATE_FAILED = "FEATURE_UPDATE_FAILED"
    BROKER_NOT_AVAILABLE = "BROKER_NOT_AVAILABLE"
    # Reading the log and snapshots.
    OFFSET_NOT_AVAILABLE = "OFFSET_NOT_AVAILABLE"
    OFFSET_OUT_OF_RANGE = "OFFSET_OUT_OF_RANGE"
    CONTINUATION_EXPIRED = "CONTINUATION_EXPIRED"
    UNKNOWN_LEADER_EPOCH = "UNKNOWN_LEADER_EPOCH"
    SNAPSHOT_NOT_FOUND = "SNAPSHOT_NOT_FOUND"
    POSITION_OUT_OF_RANGE = "POSITION_OUT_OF_RANGE"
    # Topics.
    UNKNOWN_TOPIC_OR_PARTITION = "UNKNOWN_TOPIC_OR_PARTITION"
    UNKNOWN_TOPIC_ID = "UNKNOWN_TOPIC_ID"
    TOPIC_ALREADY_EXISTS = "TOPIC_ALREADY_EXISTS"
    INVALID_TOPIC_EXCEPTION = "INVALID_TOPIC_EXCEPTION"
    INVALID_PARTITIONS = "INVALID_PARTITIONS"
    INVALID_REPLICATION_FACTOR = "INVALID_REPLICATION_FACTOR"
    INVALID_REPLICA_ASSIGNMENT = "INVALID_REPLICA_ASSIGNMENT"
    NO_REASSIGNMENT_IN_PROGRESS = "NO_REASSIGNMENT_IN_PROGRESS"
    NOT_LEADER_OR_FOLLOWER = "NOT_LEADER_OR_FOLLOWER"
    INVALID_CONFIG = "INVALID_CONFIG"
    POLICY_VIOLATION = "POLICY_VIOLATION"
    PLAN_CHANGED = "PLAN_CHANGED"
    TOPIC_DELETION_DISABLED = "TOPIC_DELETION_DISABLED"
    FENCED_LEADER_EPOCH = "FENCED_LEADER_EPOCH"
    INELIGIBLE_REPLICA = "INELIGIBLE_REPLICA"
    NEW_LEADER_ELECTED = "NEW_LEADER_ELECTED"
    ELECTION_NOT_NEEDED = "ELECTION_NOT_NEEDED"
    PREFERRED_LEADER_NOT_AVAILABLE = "PREFERRED_LEADER_NOT_AVAILABLE"
    ELIGIBLE_LEADERS_NOT_AVAILABLE = "ELIGIBLE_LEADERS_NOT_AVAILABLE"
    # Users, credentials and tokens.
    RESOURCE_NOT_FOUND = "RESOURCE_NOT_FOUND"
    DUPLICATE_RESOURCE = "DUPLICATE_RESOURCE"
    UNACCEPTABLE_CREDENTIAL = "UNACCEPTABLE_CREDENTIAL"
    UNSUPPORTED_SASL_MECHANISM = "UNSUPPORTED_SASL_MECHANISM"
    SECURITY_DISABLED = "SECURITY_DISABLED"
    INVALID_PRINCIPAL_TYPE = "INVALID_PRINCIPAL_TYPE"
    DELEGATION_TOKEN_AUTH_DISABLED = "DELEGATION_TOKEN_AUTH_DISABLED"  # noqa: S105 - a code
    DELEGATION_TOKEN_NOT_FOUND = "DELEGATION_TOKEN_NOT_FOUND"  # noqa: S105 - a code
    DELEGATION_TOKEN_OWNER_MISMATCH = "DELEGATION_TOKEN_OWNER_MISMATCH"  # noqa: S105 - a code
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"  # noqa: S105 - a code
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = "DELEGATION_TOKEN_AUTHORIZATION_FAILED"  # noqa: S105 - a code
    DELEGATION_TOKEN_EXPIRED = "DELEGATION_TOKEN_EXPIRED"  # noqa: S105 - a code
    # Coordination.
    SESSION_LOST = "SESSION_LOST"
    ENTRY_EXISTS = "ENTRY_EXISTS"
    NOT_HELD = "NOT_HELD"
    KEY_EXISTS = "KEY_EXISTS"
    KEY_MISSING = "KEY_MISSING"
    REVISION_MISMATCH = "REVISION_MISMATCH"
    FENCED = "FENCED"
    INVALID_KEY = "INVALID_KEY"
    VALUE_TOO_LARGE = "VALUE_TOO_LARGE"
    TXN_TOO_LARGE = "TXN_TOO_LARGE"
    COORDINATION_FULL = "COORDINATION_FULL"
    # The bridge to a store that is moved here.
    SOURCE_LEADS = "SOURCE_LEADS"
    # Imports.
    IMPORT_INCOMPLETE = "IMPORT_INCOMPLETE"
    # Controllers.
    CONTROLLER_ID_NOT_REGISTERED = "CONTROLLER_ID_NOT_REGISTERED"
    # Room and disks.
    THROTTLED = "THROTTLED"
    THROTTLING_QUOTA_EXCEEDED = "THROTTLING_QUOTA_EXCEEDED"
    DISK_FULL = "DISK_FULL"
    STORAGE_ERROR = "STORAGE_ERROR"

    @property
    def facts(self) -> ErrorFacts:
        return _FACTS[self]

    @property
    def status(self) -> int:
        return _FACTS[self].status

    @property
    def fault(self) -> Fault:
        return _FACTS[self].fault

    @property
    def retriable(self) -> bool:
        return _FACTS[self].retriable

    @property
    def advice(self) -> str:
        return _FACTS[self].advice


_CLIENT, _SERVER, _CLUSTER = Fault.CLIENT, Fault.SERVER, Fault.CLUSTER
_E = ErrorCode
_FACTS: Final[Mapping[ErrorCode, ErrorFacts]] = MappingProxyType(
    {
        _E.NOT_CONTROLLER: ErrorFacts(
            421, _CLUSTER, True, "Send the request to the leader that the answer names."
        ),
        _E.NO_QUORUM: ErrorFacts(
            503, _CLUSTER, True, "Wait for a leader; if none comes, start the other controllers."
        ),
        _E.STATE_DIVERGED: ErrorFacts(
            503,
            _SERVER,
            False,
            "Stop this controller, keep its folder for a report, and start it on an empty folder.",
        ),
        _E.REQUEST_TIMED_OUT: ErrorFacts(
            503,
            _CLUSTER,
            True,
            "Try again with the same request id: the change may have been made, and is made once.",
        ),
        _E.UNKNOWN_SERVER_ERROR: ErrorFacts(
            500, _SERVER, False, "Report it, with the node's log: this is a defect."
        ),
        _E.SHUTTING_DOWN: ErrorFacts(
            503, _CLUSTER, True, "Ask another controller; this one is stopping."
        ),
        _E.UNAUTHENTICATED: ErrorFacts(
            401, _CLIENT, False, "Send a client certificate, or a valid bearer token."
        ),
        _E.CLUSTER_AUTHORIZATION_FAILED: ErrorFacts(
            403, _CLIENT, False, "Ask as a principal that may act on the cluster."
        ),
        _E.TOPIC_AUTHORIZATION_FAILED: ErrorFacts(
            403, _CLIENT, False, "Ask as a principal that may act on the topic."
        ),
        _E.PLAN_CHANGED: ErrorFacts(
            409, _CLIENT, False, "Look at the plan of a new dry run, and apply that one."
        ),
        _E.INVALID_REQUEST: ErrorFacts(
            400, _CLIENT, False, "Correct the field that the message names."
        ),
        _E.MALFORMED_BODY: ErrorFacts(
            400, _CLIENT, False, "Send a whole body, in the format that content-type names."
        ),
        _E.BODY_TOO_LARGE: ErrorFacts(413, _CLIENT, False, "Split the request into smaller ones."),
        _E.BODY_TIMED_OUT: ErrorFacts(
            408, _CLIENT, True, "Send the whole body at once; check the network if it repeats."
        ),
        _E.UNSUPPORTED_MEDIA_TYPE: ErrorFacts(
            415, _CLIENT, False, "Send content-type application/json or application/msgpack."
        ),
        _E.NOT_FOUND: ErrorFacts(
            404, _CLIENT, False, "Check the path; /v1/openapi.json lists all paths."
        ),
        _E.METHOD_NOT_ALLOWED: ErrorFacts(
            405, _CLIENT, False, "Use one of the methods that the path allows."
        ),
        _E.REQUEST_EXPIRED: ErrorFacts(
            409,
            _CLIENT,
            False,
            "Check whether the change was made; if not, send it again with a new request id.",
        ),
        _E.REQUEST_FROM_FUTURE: ErrorFacts(
            400, _CLIENT, False, "Correct your clock by the time in the answer; draw a new id."
        ),
        _E.REQUEST_ID_REUSED: ErrorFacts(
            409, _CLIENT, False, "Draw a new request id: this one belongs to another request."
        ),
        _E.STALE_EXPECTED_OFFSET: ErrorFacts(
            412, _CLIENT, False, "Read the state again, and decide anew: it has changed since."
        ),
        _E.INCONSISTENT_CLUSTER_ID: ErrorFacts(
            409, _CLIENT, False, "Use the controllers of your cluster: these have another id."
        ),
        _E.STALE_BROKER_EPOCH: ErrorFacts(
            409, _CLIENT, False, "Stop this broker process; a new process registers anew."
        ),
        _E.DUPLICATE_BROKER_REGISTRATION: ErrorFacts(
            409,
            _CLIENT,
            True,
            "Stop the other process with this broker id, or take another id.",
        ),
        _E.BROKER_ID_NOT_REGISTERED: ErrorFacts(
            404, _CLIENT, False, "Check the broker id; `logberg brokers list` shows those known."
        ),
        _E.INVALID_REGISTRATION: ErrorFacts(
            400, _CLIENT, False, "Correct the registration's field that the message names."
        ),
        _E.UNSUPPORTED_VERSION: ErrorFacts(
            400, _CLIENT, False, "Use software that supports the cluster's feature levels."
        ),
        _E.INVALID_UPDATE_VERSION: ErrorFacts(
            400,
            _CLIENT,
            False,
            "Ask for a level that every node supports (see `logberg features list`); for a "
            "partition, wait for newer metadata and decide again.",
        ),
        _E.FEATURE_UPDATE_FAILED: ErrorFacts(
            409,
            _CLUSTER,
            True,
            "Start the controllers that the message names, on this release, and ask again.",
        ),
        _E.VOTERS_NOT_READY: ErrorFacts(
            409,
            _CLUSTER,
            True,
            "Start the controllers that the message names, let them catch up, and ask again.",
        ),
        _E.BROKER_NOT_AVAILABLE: ErrorFacts(
            503, _CLUSTER, True, "Ask another broker: this one is fenced or stopping."
        ),
        _E.OFFSET_NOT_AVAILABLE: ErrorFacts(
            503, _CLUSTER, True, "Wait until this node has caught up, or ask the leader."
        ),
        _E.OFFSET_OUT_OF_RANGE: ErrorFacts(
            416, _CLIENT, False, "Ask for an offset between the log's start and its end."
        ),
        _E.CONTINUATION_EXPIRED: ErrorFacts(
            410, _CLIENT, False, "Read again from the first page: the state has moved on."
        ),
        _E.UNKNOWN_LEADER_EPOCH: ErrorFacts(
            421, _CLUSTER, True, "Ask the other controllers: this one knows an older epoch only."
        ),
        _E.SNAPSHOT_NOT_FOUND: ErrorFacts(
            404, _CLUSTER, True, "Fetch again: the answer names a snapshot that exists."
        ),
        _E.POSITION_OUT_OF_RANGE: ErrorFacts(
            416, _CLIENT, False, "Ask for a range within the snapshot's size."
        ),
        _E.UNKNOWN_TOPIC_OR_PARTITION: ErrorFacts(
            404, _CLIENT, False, "Check the name; `logberg topics list` shows those that exist."
        ),
        _E.UNKNOWN_TOPIC_ID: ErrorFacts(
            404, _CLIENT, False, "Check the id; a topic that was created again has a new id."
        ),
        _E.TOPIC_ALREADY_EXISTS: ErrorFacts(
            409, _CLIENT, False, "Take another name, or use the topic that is there."
        ),
        _E.INVALID_TOPIC_EXCEPTION: ErrorFacts(
            400,
            _CLIENT,
            False,
            "Use 1 to 249 letters, digits, '.', '_' or '-', but not '.' or '..'; no other topic "
            "may have the name with '.' for '_'.",
        ),
        _E.INVALID_PARTITIONS: ErrorFacts(
            400, _CLIENT, False, "Ask for at least 1 partition; -1 takes the default."
        ),
        _E.INVALID_REPLICATION_FACTOR: ErrorFacts(
            400, _CLIENT, False, "Ask for 1 up to the number of usable brokers; -1 is the default."
        ),
        _E.INVALID_REPLICA_ASSIGNMENT: ErrorFacts(
            400,
            _CLIENT,
            False,
            "Number partitions from 0 without gaps; give each the same number of registered "
            "brokers, all different, at least one online.",
        ),
        _E.NO_REASSIGNMENT_IN_PROGRESS: ErrorFacts(
            409, _CLIENT, False, "Do nothing: no reassignment of this partition is running."
        ),
        _E.NOT_LEADER_OR_FOLLOWER: ErrorFacts(
            409, _CLIENT, False, "Read the metadata again: this broker has no such replica."
        ),
        _E.INVALID_CONFIG: ErrorFacts(
            400, _CLIENT, False, "Correct the config that the message names."
        ),
        _E.POLICY_VIOLATION: ErrorFacts(
            400, _CLIENT, False, "Change the request so that the policy allows it."
        ),
        _E.TOPIC_DELETION_DISABLED: ErrorFacts(
            403, _CLIENT, False, "Enable the deletion of topics in the controllers' settings."
        ),
        _E.FENCED_LEADER_EPOCH: ErrorFacts(
            409, _CLIENT, False, "Wait for the metadata: the partition has a newer leader epoch."
        ),
        _E.INELIGIBLE_REPLICA: ErrorFacts(
            409,
            _CLUSTER,
            True,
            "Ask again when the metadata shows the replica's broker online in the epoch you know.",
        ),
        _E.NEW_LEADER_ELECTED: ErrorFacts(
            409, _CLIENT, False, "Stop leading: the change was made, and another broker leads now."
        ),
        _E.ELECTION_NOT_NEEDED: ErrorFacts(
            409, _CLIENT, False, "Do nothing: the leader is already the one that you want."
        ),
        _E.PREFERRED_LEADER_NOT_AVAILABLE: ErrorFacts(
            503, _CLUSTER, True, "Start the preferred leader and let it catch up, then ask again."
        ),
        _E.ELIGIBLE_LEADERS_NOT_AVAILABLE: ErrorFacts(
            503, _CLUSTER, True, "Start a broker that holds a replica, then ask again."
        ),
        _E.RESOURCE_NOT_FOUND: ErrorFacts(
            404, _CLIENT, False, "Check the name; `logberg users list` shows those that exist."
        ),
        _E.DUPLICATE_RESOURCE: ErrorFacts(
            400, _CLIENT, False, "Name each credential once in a request."
        ),
        _E.UNACCEPTABLE_CREDENTIAL: ErrorFacts(
            400, _CLIENT, False, "Correct the credential's field that the message names."
        ),
        _E.UNSUPPORTED_SASL_MECHANISM: ErrorFacts(
            400, _CLIENT, False, "Use SCRAM-SHA-256 or SCRAM-SHA-512."
        ),
        _E.SECURITY_DISABLED: ErrorFacts(
            403, _SERVER, False, "Give every controller the cluster key; see the runbook."
        ),
        _E.INVALID_PRINCIPAL_TYPE: ErrorFacts(
            400, _CLIENT, False, "Name a user, such as User:alice."
        ),
        _E.DELEGATION_TOKEN_AUTH_DISABLED: ErrorFacts(
            403,
            _SERVER,
            False,
            "Give every controller the cluster key: tokens need it; see the runbook.",
        ),
        _E.DELEGATION_TOKEN_NOT_FOUND: ErrorFacts(
            404, _CLIENT, False, "Check the token's id and its HMAC; it may have expired."
        ),
        _E.DELEGATION_TOKEN_OWNER_MISMATCH: ErrorFacts(
            403, _CLIENT, False, "Ask as the token's owner, or as one of its renewers."
        ),
        _E.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: ErrorFacts(
            403, _CLIENT, False, "Ask as a user that authenticated itself, by another way."
        ),
        _E.DELEGATION_TOKEN_AUTHORIZATION_FAILED: ErrorFacts(
            403, _CLIENT, False, "Ask as the owner, or as one who may create tokens for it."
        ),
        _E.DELEGATION_TOKEN_EXPIRED: ErrorFacts(
            410, _CLIENT, False, "Create a new token: this one has expired."
        ),
        _E.SESSION_LOST: ErrorFacts(
            410, _CLIENT, False, "Stop what needs the session, and open a new one: it has ended."
        ),
        _E.ENTRY_EXISTS: ErrorFacts(
            409, _CLIENT, False, "Take another id, or wait until the other session's entry is gone."
        ),
        _E.NOT_HELD: ErrorFacts(
            409, _CLIENT, False, "Enter first: this session has no such entry."
        ),
        _E.KEY_EXISTS: ErrorFacts(
            409, _CLIENT, False, "Update the key, or put another one: it is there already."
        ),
        _E.KEY_MISSING: ErrorFacts(404, _CLIENT, False, "Put the key first: it is not there."),
        _E.REVISION_MISMATCH: ErrorFacts(
            409, _CLIENT, False, "Read the key again and decide anew: it has changed."
        ),
        _E.FENCED: ErrorFacts(
            409, _CLIENT, False, "Stop writing: the grant with this token has ended."
        ),
        _E.INVALID_KEY: ErrorFacts(
            400, _CLIENT, False, "Use 1 to 1,024 bytes of UTF-8 for each key, name and id."
        ),
        _E.VALUE_TOO_LARGE: ErrorFacts(
            413, _CLIENT, False, "Store a smaller value, or divide it among several keys."
        ),
        _E.TXN_TOO_LARGE: ErrorFacts(
            413, _CLIENT, False, "Divide the transaction into smaller ones."
        ),
        _E.COORDINATION_FULL: ErrorFacts(
            507, _SERVER, False, "Remove keys or end sessions: a limit of all of them is reached."
        ),
        _E.SOURCE_LEADS: ErrorFacts(
            409,
            _CLIENT,
            False,
            "Make the change in the store that the bridge follows, or let this cluster take over.",
        ),
        _E.IMPORT_INCOMPLETE: ErrorFacts(
            409, _CLIENT, False, "Send the parts that `missing` names, then import again."
        ),
        _E.CONTROLLER_ID_NOT_REGISTERED: ErrorFacts(
            404, _CLIENT, False, "Check the id; `logberg features list` shows the controllers."
        ),
        _E.THROTTLED: ErrorFacts(
            429, _CLIENT, True, "Ask more slowly; retry after the time that the answer gives."
        ),
        _E.THROTTLING_QUOTA_EXCEEDED: ErrorFacts(
            429, _CLIENT, True, "Wait until the quota for changes of partitions has room again."
        ),
        _E.DISK_FULL: ErrorFacts(
            507, _SERVER, True, "Free or add disk space on the node that answered."
        ),
        _E.STORAGE_ERROR: ErrorFacts(
            503, _SERVER, False, "Look at the node's log and disk; it doesn't serve until repaired."
        ),
    }
)


class LogbergError(Exception):
    """A request can't be done. `message` says why; without one, it is the code's advice."""

    def __init__(
        self,
        code: ErrorCode,
        message: str = "",
        details: Mapping[str, str] | None = None,
        retry_after_ms: int | None = None,
    ) -> None:
        self.code = code
        self.retry_after_ms = retry_after_ms
        """After how many ms to ask the same node again; None: the code says enough."""
        self.message = message or code.advice
        self.details: Mapping[str, str] = MappingProxyType(dict(details or {}))
        """Particulars by camelCase name, for programs."""
        super().__init__(f"{code.value}: {self.message}")
