"""Makes events from the records of settled moments.

Rule: this is the only place where a record becomes an event, for the embedded engine and for Spark
alike. A caller that can't hand over every record hands over those that `sieve.Sieve` keeps; then
the events are the same, but for repeated `activity`, which changes no finding. `carried` is what
the next piece needs.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from audit.findings.access import DENY, WIDE, KnownEntry, known_entry
from audit.findings.events import AuditEvent, EventCaller, in_log_order
from audit.findings.refusals import refused_codes
from audit.findings.settings_watched import WatchedSettings
from audit.questions.names import Names
from audit.reading.settling import Logged, Moment
from ledger.batch import BatchHeader, Provenance
from metadata.credentials import joined_principal
from metadata.features import LITERAL_AMENDMENTS_FROM, LOGBERG_VERSION
from metadata.records import (
    NO_LEADER,
    AccessControlEntryRecord,
    AccessTokenRecord,
    BeginEpochRecord,
    BrokerRegistrationChangeRecord,
    ClientQuotaRecord,
    ClusterGenerationRecord,
    ClusterKeyRecord,
    ConfigRecord,
    DelegationTokenRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    FencingChange,
    JoinTokenRecord,
    KRaftVersionRecord,
    PartitionChangeRecord,
    PartitionRecord,
    Record,
    RegisterBrokerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    RequestOutcomeRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UserScramCredentialRecord,
    VotersRecord,
)
from metadata.records.credentials import NEVER
from metadata.uuids import uuid7_time_ms, uuid_text

CLOCK_FLOOR_MS: Final = 60_000
"""From here on the difference of two clocks is an event."""
_UNCLEAN_KEY: Final = "unclean.leader.election.enable"
_INTERNAL: Final = "internal"
_PARTITIONS: Final = (PartitionRecord, PartitionChangeRecord)


class _Carried(msgspec.Struct):
    """What the maker remembers. Keys are text, so that its encoding is canonical."""

    topics: dict[str, str] = {}
    """Names by id."""
    acls: dict[str, KnownEntry] = {}
    token_owners: dict[str, str] = {}
    settings: dict[str, str] = {}
    lost: dict[str, list[int]] = {}
    """By topic id: the partitions without a leader."""
    brokers: dict[str, tuple[str, bool]] = {}
    """By id: incarnation, and whether it is fenced."""
    voters: str = ""
    key: str = ""
    """Voters and cluster key, in words; empty: none yet."""
    literal: bool = False
    """Registrations are as they stand (ADR 0015)."""


def concerns(record: Record, *, leaders: bool = True) -> bool:
    """Return whether events are made of such a record. It looks at nothing but the record.

    `leaders`: as in `EventMaker`.
    """
    if isinstance(record, _PARTITIONS):
        found = leaders and record.column("leader") is not None
        return found or record.privileged() is not None
    if isinstance(record, RequestOutcomeRecord):
        return bool(refused_codes(record.answer))
    return type(record) in _MAKERS


def clock_apart_ms(header: BatchHeader) -> int:
    """Return how much older a batch's request id is than the batch, in ms; 0: not remarkable."""
    request_id = header.provenance.request_id
    if not request_id:
        return 0
    try:
        apart = header.timestamp_ms - uuid7_time_ms(request_id)
    except ValueError:
        return 0
    return apart if abs(apart) >= CLOCK_FLOOR_MS else 0


class EventMaker:
    """Turns moments into events, one after another."""

    def __init__(self, carried: bytes | None = None, *, leaders: bool = True) -> None:
        """`carried`: of the piece before; None at the log's beginning.

        `leaders` False: the caller makes `leader_lost` and `leader_found` itself.
        """
        self._state = _Carried() if carried is None else _decode(carried)
        self._settings = WatchedSettings(self._state.settings)
        self._leaders = leaders
        self._seen: set[tuple[str, ...]] = set()
        self._new_topics: set[str] = set()
        self._found: list[AuditEvent] = []
        self._now: tuple[int, int] = 0, 0
        self._one: tuple[int, EventCaller] = 0, EventCaller()

    def carried(self) -> bytes:
        """Return what a maker of the next piece needs; equal for equal histories."""
        return _encode(self._state)

    def begin(self, records: Iterable[Record], time_ms: int = 0) -> list[AuditEvent]:
        """Learn the facts with which a cut log begins; return them for `Watcher.begin`.

        `time_ms`: the checkpoint's. They are no events of the log.
        """
        header = BatchHeader(0, 0, 0, time_ms, _nobody(), b"")
        learned = [Logged(0, header, record, "", 0, time_ms) for record in records]
        facts = self.step(Moment(0, time_ms, learned))
        self._seen.clear()
        return facts

    def step(self, moment: Moment) -> list[AuditEvent]:
        """Return the events of a moment, in the log's order."""
        self._found, self._now = [], (moment.base, moment.time_ms)
        self._new_topics.clear()
        header: BatchHeader | None = None
        for logged in moment.records:
            if logged.header is not header:
                header = logged.header
                self._meet(logged.offset, header)
            make = _MAKERS.get(type(logged.record))
            if make is not None:
                self._one = logged.offset, self._one[1]
                make(self, logged.record)
        found, self._found = self._found, []
        return in_log_order(found) if len(found) > 1 else found

    def _meet(self, offset: int, header: BatchHeader) -> None:
        caller = event_caller(header)
        self._one = offset, caller
        if caller.identity not in self._seen:
            self._seen.add(caller.identity)
            self._add("activity", "")
        apart = clock_apart_ms(header)
        if apart:
            self._add("clock_apart", "", amount=apart)

    def _add(
        self,
        kind: str,
        subject: str,
        *,
        grantee: str = "",
        what: str = "",
        before: str = "",
        amount: int = 0,
        traits: Iterable[str] = (),
    ) -> None:
        offset, caller = self._one
        base, time_ms = self._now
        own = [*filter(None, traits), *caller_traits(caller)]
        self._found.append(
            AuditEvent(
                base,
                offset,
                time_ms,
                kind,
                subject,
                caller,
                grantee,
                what,
                before,
                amount,
                tuple(own),
            )
        )

    # Access.

    def acl_added(self, record: AccessControlEntryRecord) -> None:
        entry = known_entry(record)
        word = uuid_text(record.id)
        self._state.acls[word] = entry
        self._add(
            "acl_added", f"acl:{word}", grantee=entry.grantee, what=entry.words, traits=entry.traits
        )

    def acl_removed(self, record: RemoveAccessControlEntryRecord) -> None:
        word = uuid_text(record.id)
        entry = self._state.acls.pop(word, KnownEntry("", "", ()))
        traits = (DENY, WIDE) if DENY in entry.traits else ()
        self._add(
            "acl_removed", f"acl:{word}", grantee=entry.grantee, what=entry.words, traits=traits
        )

    def user_set(self, record: UserScramCredentialRecord) -> None:
        self._add("user_set", f"user:{record.name}", grantee=f"User:{record.name}")

    def user_removed(self, record: RemoveUserScramCredentialRecord) -> None:
        self._add("user_removed", f"user:{record.name}", grantee=f"User:{record.name}")

    def token_set(self, record: DelegationTokenRecord) -> None:
        self._state.token_owners[record.token_id] = record.owner
        self._add("token_set", f"token:{record.token_id}", grantee=record.owner)

    def token_removed(self, record: RemoveDelegationTokenRecord) -> None:
        owner = self._state.token_owners.pop(record.token_id, "")
        self._add("token_removed", f"token:{record.token_id}", grantee=owner)

    def access_token(self, record: AccessTokenRecord) -> None:
        kind = "token_set" if record.revoked_ms == NEVER else "token_removed"
        self._add(kind, f"access-token:{record.token_id}", grantee=record.principal)

    def join_token(self, record: JoinTokenRecord) -> None:
        is_open = record.revoked_ms == record.used_ms == NEVER
        kind = "token_set" if is_open else "token_removed"
        self._add(kind, f"join-token:{record.token_id}", grantee=joined_principal(record))

    # The cluster.

    def quota_set(self, record: ClientQuotaRecord) -> None:
        value = "removed" if record.remove else f"{record.value:g}"
        self._add("quota_set", record.entity_word, what=f"{record.key} {value}")

    def feature_set(self, record: FeatureLevelRecord) -> None:
        if record.name == LOGBERG_VERSION:
            self._state.literal = record.feature_level >= LITERAL_AMENDMENTS_FROM
        self._add("feature_set", f"feature:{record.name}", what=str(record.feature_level))

    def kraft_set(self, record: KRaftVersionRecord) -> None:
        self._add("feature_set", "feature:kraft.version", what=str(record.k_raft_version))

    def voters_set(self, record: VotersRecord) -> None:
        ids = sorted(voter.voter_id for voter in record.voters)
        words = f"voters {', '.join(map(str, ids))}"
        replaced = "replaced" if self._state.voters else ""
        self._state.voters = words
        self._add("voters_set", "quorum", what=words, traits=(replaced,))

    def generation_begun(self, record: ClusterGenerationRecord) -> None:
        replaced = "replaced" if record.generation > 1 else ""
        words = f"generation {record.generation}"
        self._add("voters_set", "quorum", what=words, traits=(replaced,))

    def key_set(self, record: ClusterKeyRecord) -> None:
        words = f"key {record.key_id.hex()}"
        replaced = "replaced" if self._state.key not in ("", words) else ""
        self._state.key = words
        self._add("key_set", "quorum", what=words, traits=(replaced,))

    def epoch_begun(self, record: BeginEpochRecord) -> None:
        self._add("epoch_begun", f"controller:{record.leader_id}")

    def outcome(self, record: RequestOutcomeRecord) -> None:
        for code, count in sorted(refused_codes(record.answer).items()):
            self._add("refused", f"request:{uuid_text(record.key)}", what=code, amount=count)

    # Configs and topics.

    def configured(self, record: ConfigRecord) -> None:
        (subject, *_) = record.subjects(_NO_NAMES)
        before, direction = self._settings.change(record)
        topic = subject.split(":", 3)[2] if subject.startswith("config:topic:") else ""
        if record.resource_name in self._new_topics and topic:
            direction = ""
        secret = "secret" if record.secret_fields() else ""
        value = "***" if secret and record.value is not None else record.value
        kind = "config_removed" if record.value is None else "config_set"
        if record.privileged() is not None:
            kind = "unclean_allowed"
        unclean = record.name == _UNCLEAN_KEY and (record.value or "").strip().lower() == "true"
        traits = (direction, secret, "unclean" if unclean else "")
        self._add(kind, subject, what=value or "", before=before, traits=traits)

    def topic_created(self, record: TopicRecord) -> None:
        self._state.topics[uuid_text(record.topic_id)] = record.name
        self._new_topics.add(record.name)
        self._add("topic_created", f"topic:{record.name}")

    def topic_removed(self, record: RemoveTopicRecord) -> None:
        word = uuid_text(record.topic_id)
        name = self._state.topics.pop(word, word)
        for partition in self._state.lost.pop(word, ()):
            self._add("leader_found", f"partition:{name}-{partition}", what="removed")
        self._settings.forget_topic(name)
        self._add("topic_removed", f"topic:{name}")

    def partition(self, record: PartitionRecord | PartitionChangeRecord) -> None:
        leader = record.column("leader")
        unclean = record.privileged() is not None
        if leader is None and not unclean:
            return
        word = uuid_text(record.topic_id)
        name = self._state.topics.get(word, word)
        subject = f"partition:{name}-{record.partition_id}"
        if unclean:
            self._add("unclean_elected", subject, what=f"broker {record.leader}")
        if leader is None or not self._leaders:
            return
        lost = self._state.lost.get(word, [])
        if leader == NO_LEADER and record.partition_id not in lost:
            self._state.lost[word] = sorted([*lost, record.partition_id])
            self._add("leader_lost", subject)
        elif leader != NO_LEADER and record.partition_id in lost:
            lost.remove(record.partition_id)
            if not lost:
                del self._state.lost[word]
            self._add("leader_found", subject, what=f"broker {leader}")

    # Brokers.

    def broker_registered(self, record: RegisterBrokerRecord) -> None:
        before = self._state.brokers.get(str(record.broker_id))
        incarnation = uuid_text(record.incarnation_id)
        self._add("broker_registered", f"broker:{record.broker_id}")
        if before is None or before[0] != incarnation:
            self._state.brokers[str(record.broker_id)] = incarnation, record.fenced
        elif self._state.literal:
            self._fence(record.broker_id, fenced=record.fenced)

    def broker_removed(self, record: UnregisterBrokerRecord) -> None:
        self._state.brokers.pop(str(record.broker_id), None)
        self._add("broker_removed", f"broker:{record.broker_id}")

    def broker_changed(self, record: BrokerRegistrationChangeRecord) -> None:
        if record.fenced != FencingChange.NONE:
            self._fence(record.broker_id, fenced=record.fenced == FencingChange.FENCE)

    def fenced(self, record: FenceBrokerRecord) -> None:
        self._fence(record.id, fenced=True)

    def unfenced(self, record: UnfenceBrokerRecord) -> None:
        self._fence(record.id, fenced=False)

    def _fence(self, broker_id: int, *, fenced: bool) -> None:
        incarnation, before = self._state.brokers.get(str(broker_id), ("", not fenced))
        self._state.brokers[str(broker_id)] = incarnation, fenced
        if fenced != before:
            kind = "broker_fenced" if fenced else "broker_unfenced"
            self._add(kind, f"broker:{broker_id}")


def caller_traits(caller: EventCaller) -> tuple[str, ...]:
    """Return the traits that an event has by its caller."""
    if caller.auth_method == _INTERNAL:
        return ("internal",)
    return () if caller.reason else ("unexplained",)


def event_caller(header: BatchHeader) -> EventCaller:
    """Return who asked for a batch."""
    said = header.provenance
    return EventCaller(
        said.principal,
        said.on_behalf_of,
        said.auth_method,
        said.client_address,
        header.acted_as,
        said.operation,
        said.reason,
    )


def _nobody() -> Provenance:
    return Provenance(auth_method=_INTERNAL)


_NO_NAMES: Final = Names()
_MAKERS: Final[dict[type[Record], Callable[[EventMaker, Any], None]]] = {
    AccessControlEntryRecord: EventMaker.acl_added,
    RemoveAccessControlEntryRecord: EventMaker.acl_removed,
    UserScramCredentialRecord: EventMaker.user_set,
    RemoveUserScramCredentialRecord: EventMaker.user_removed,
    DelegationTokenRecord: EventMaker.token_set,
    RemoveDelegationTokenRecord: EventMaker.token_removed,
    AccessTokenRecord: EventMaker.access_token,
    JoinTokenRecord: EventMaker.join_token,
    ClientQuotaRecord: EventMaker.quota_set,
    FeatureLevelRecord: EventMaker.feature_set,
    KRaftVersionRecord: EventMaker.kraft_set,
    VotersRecord: EventMaker.voters_set,
    ClusterGenerationRecord: EventMaker.generation_begun,
    ClusterKeyRecord: EventMaker.key_set,
    BeginEpochRecord: EventMaker.epoch_begun,
    RequestOutcomeRecord: EventMaker.outcome,
    ConfigRecord: EventMaker.configured,
    TopicRecord: EventMaker.topic_created,
    RemoveTopicRecord: EventMaker.topic_removed,
    PartitionRecord: EventMaker.partition,
    PartitionChangeRecord: EventMaker.partition,
    RegisterBrokerRecord: EventMaker.broker_registered,
    UnregisterBrokerRecord: EventMaker.broker_removed,
    BrokerRegistrationChangeRecord: EventMaker.broker_changed,
    FenceBrokerRecord: EventMaker.fenced,
    UnfenceBrokerRecord: EventMaker.unfenced,
}
_encode = msgspec.msgpack.Encoder(order="deterministic").encode
_decode = msgspec.msgpack.Decoder(_Carried).decode
