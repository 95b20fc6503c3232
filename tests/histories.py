"""Generates legal record histories from a seed, as the log of a living cluster may hold them.

Rule: the generator has its own small model of the state and uses no code of the image, so replay
must accept every record that it writes. Batches carry what replay needs: their offsets, epoch and
time.
"""

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from metadata.features import SUPPORTED
from metadata.pseudonyms import pseudonym_of
from metadata.records import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    AccessTokenRecord,
    AttemptsRecord,
    BeginEpochRecord,
    BeginTransactionRecord,
    BridgeRecord,
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    CertificateRevocationRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ClusterGenerationRecord,
    ClusterKeyRecord,
    ConfigRecord,
    ControllerEndpoint,
    ControllerFeature,
    DelegationTokenRecord,
    EndSessionRecord,
    EndTransactionRecord,
    EntityData,
    EntryRecord,
    EpochVoter,
    FeatureLevelRecord,
    FenceBrokerRecord,
    HeadKeyCause,
    HeadKeyRecord,
    HeadSignature,
    JoinTokenRecord,
    KeyRecord,
    KRaftVersionRecord,
    LegacyBrokerRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    PseudonymRecord,
    Record,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveAccessTokenRecord,
    RemoveCertificateRevocationRecord,
    RemoveDelegationTokenRecord,
    RemoveEntryRecord,
    RemoveJoinTokenRecord,
    RemoveKeyRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    RequestOutcomeRecord,
    SessionRecord,
    SignedHeadRecord,
    SubjectErasedRecord,
    SubjectKeysRecord,
    TokenBaseRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
    UserScramCredentialRecord,
    Voter,
    VoterEndpoint,
    VoterKRaftVersions,
    VotersRecord,
    ZkMigrationStateRecord,
)

HOUR_MS = 60 * 60 * 1000


class HistoryBatch(NamedTuple):
    """Records that are atomic, and where they stand."""

    base_offset: int
    epoch: int
    timestamp_ms: int
    records: tuple[Record, ...]

    @property
    def end_offset(self) -> int:
        return self.base_offset + len(self.records)


class _Model:
    """What exists; copied when a transaction begins."""

    def __init__(self) -> None:
        self.brokers: dict[int, tuple[bytes, int]] = {}
        self.controllers: set[int] = set()
        self.topics: dict[bytes, tuple[str, dict[int, int]]] = {}
        self.acls: list[bytes] = []
        self.credentials: set[tuple[str, int]] = set()
        self.tokens: set[str] = set()
        self.next_producer_id = 0
        self.sessions: dict[bytes, list[EntryRecord]] = {}
        self.keys: dict[str, KeyRecord] = {}
        self.token_base = 0
        self.legacy_brokers: set[int] = set()
        self.access_tokens: set[str] = set()
        self.join_tokens: set[str] = set()
        self.revoked: set[tuple[int, str]] = set()
        self.head_keys: set[int] = set()
        self.head_size = 0

    def copy(self) -> "_Model":
        twin = _Model()
        twin.brokers = dict(self.brokers)
        twin.controllers = set(self.controllers)
        twin.topics = {key: (name, dict(parts)) for key, (name, parts) in self.topics.items()}
        twin.acls = list(self.acls)
        twin.credentials = set(self.credentials)
        twin.tokens = set(self.tokens)
        twin.next_producer_id = self.next_producer_id
        twin.sessions = {key: list(held) for key, held in self.sessions.items()}
        twin.keys = dict(self.keys)
        twin.token_base = self.token_base
        twin.legacy_brokers = set(self.legacy_brokers)
        twin.access_tokens = set(self.access_tokens)
        twin.join_tokens = set(self.join_tokens)
        twin.revoked = set(self.revoked)
        twin.head_keys = set(self.head_keys)
        twin.head_size = self.head_size
        return twin


class History:
    """Writes one batch after another."""

    def __init__(self, seed: int, *, brokers: int = 6) -> None:
        self._dice = random.Random(seed)
        # With dice of their own, these change nothing of what was drawn before they came.
        self._credential_dice = random.Random(f"credentials {seed}")
        self._attempt_dice = random.Random(f"attempts {seed}")
        self._head_dice = random.Random(f"heads {seed}")
        self._broker_ids = range(brokers)
        self._model = _Model()
        self._before: _Model | None = None
        self._offset = 0
        self._epoch = 0
        self._timestamp_ms = 1_700_000_000_000
        self._given = 0
        self._records: list[Record] = []
        self._actions: tuple[tuple[int, Callable[[], None]], ...] = (
            (6, self._register_broker),
            (6, self._change_broker),
            (1, self._unregister_broker),
            (2, self._controller),
            (5, self._create_topic),
            (2, self._remove_topic),
            (30, self._change_partition),
            (3, self._rewrite_partition),
            (1, self._clear_elr),
            (4, self._config),
            (3, self._quota),
            (2, self._producer_ids),
            (2, self._acl),
            (2, self._credential),
            (2, self._token),
            (3, self._session),
            (4, self._entry),
            (3, self._key),
            (1, self._bridge),
            (2, self._feature),
            (1, self._quorum),
            (1, self._no_op),
        )

    def batches(self, count: int) -> list[HistoryBatch]:
        """Return the next `count` batches."""
        return [self.batch() for _ in range(count)]

    def batch(self) -> HistoryBatch:
        """Return the next batch."""
        self._records = []
        self._timestamp_ms += self._dice.choice((0, 1, 200, HOUR_MS))
        if self._epoch == 0 or self._dice.random() < 0.05:
            self._begin_epoch()
        for _ in range(self._dice.randint(1, 6)):
            if self._dice.random() < 0.06:
                self._transaction()
            weights = [weight for weight, _ in self._actions]
            self._dice.choices(self._actions, weights)[0][1]()
        if self._dice.random() < 0.5:
            self._outcome()
        if self._credential_dice.random() < 0.2:
            self._credential_in_log()
        if self._attempt_dice.random() < 0.1:
            self._attempts()
        if self._head_dice.random() < 0.1:
            self._head()
        if not self._records:
            self._no_op()
        batch = HistoryBatch(self._offset, self._epoch, self._timestamp_ms, tuple(self._records))
        self._offset = batch.end_offset
        return batch

    def close_transaction(self) -> HistoryBatch | None:
        """Return a batch that ends the open transaction; None if there is none."""
        if self._before is None:
            return None
        self._records = [EndTransactionRecord()]
        self._before = None
        batch = HistoryBatch(self._offset, self._epoch, self._timestamp_ms, tuple(self._records))
        self._offset = batch.end_offset
        return batch

    def _write(self, record: Record) -> None:
        self._records.append(record)

    def _next_offset(self) -> int:
        return self._offset + len(self._records)

    def _uuid(self) -> bytes:
        return self._dice.randbytes(16)

    def _some_broker(self) -> int:
        return self._dice.choice(self._broker_ids)

    def _some(self, most: int) -> tuple[int, ...]:
        return tuple(self._dice.sample(self._broker_ids, self._dice.randint(0, most)))

    def _begin_epoch(self) -> None:
        self._epoch += self._dice.randint(1, 3)
        if self._before is not None:
            self._model, self._before = self._before, None
        voters = tuple(EpochVoter(voter, bytes([voter]) * 16) for voter in (1, 2, 3))
        self._write(BeginEpochRecord(self._dice.choice((1, 2, 3)), voters, voters[:2]))

    def _transaction(self) -> None:
        if self._before is None:
            self._before = self._model.copy()
            self._write(BeginTransactionRecord(self._dice.choice((None, "large operation"))))
        elif self._dice.random() < 0.6:
            self._before = None
            self._write(EndTransactionRecord())
        else:
            self._model, self._before = self._before, None
            self._write(AbortTransactionRecord(self._dice.choice((None, "changed its mind"))))

    def _register_broker(self) -> None:
        broker, offset = self._some_broker(), self._next_offset()
        known = self._model.brokers.get(broker)
        if known is not None and self._dice.random() < 0.4:
            incarnation, epoch = known
        else:
            incarnation, epoch = self._uuid(), offset
        self._model.brokers[broker] = (incarnation, epoch)
        dirs = tuple(self._uuid() for _ in range(self._dice.randint(0, 2)))
        self._write(
            RegisterBrokerRecord(
                broker,
                incarnation,
                epoch,
                (BrokerEndpoint("PLAINTEXT", f"broker-{broker}", 9092, 0),),
                (BrokerFeature("metadata.version", 1, self._dice.randint(1, 25)),),
                self._dice.choice((None, "", "zone-a")),
                self._dice.random() < 0.8,
                self._dice.random() < 0.1,
                dirs,
                cordoned_log_dirs=self._dice.choice((None, dirs)),
            )
        )

    def _change_broker(self) -> None:
        if not self._model.brokers:
            return
        broker = self._dice.choice(sorted(self._model.brokers))
        epoch = self._model.brokers[broker][1]
        kind = self._dice.random()
        if kind < 0.1:
            self._write(FenceBrokerRecord(broker, epoch))
        elif kind < 0.2:
            self._write(UnfenceBrokerRecord(broker, epoch))
        else:
            self._write(
                BrokerRegistrationChangeRecord(
                    broker,
                    epoch,
                    self._dice.choice((-1, 0, 1)),
                    int(self._dice.random() < 0.2),
                    self._dice.choice(((), (self._uuid(),))),
                    self._dice.choice((None, (), (self._uuid(),))),
                )
            )

    def _unregister_broker(self) -> None:
        if self._model.brokers:
            broker = self._dice.choice(sorted(self._model.brokers))
            self._write(UnregisterBrokerRecord(broker, self._model.brokers.pop(broker)[1]))

    def _controller(self) -> None:
        controllers = self._model.controllers
        if controllers and self._dice.random() < 0.3:
            gone = self._dice.choice(sorted(controllers))
            controllers.remove(gone)
            self._write(UnregisterControllerRecord(gone))
            return
        controller = self._dice.choice((1, 2, 3))
        controllers.add(controller)
        end_points = (ControllerEndpoint("CONTROLLER", f"controller-{controller}", 9093, 0),)
        features = (ControllerFeature("kraft.version", 0, 1),)
        record = RegisterControllerRecord(controller, self._uuid(), False, end_points, features)
        self._write(record)

    def _create_topic(self) -> None:
        free = sorted(
            {f"topic-{n}" for n in range(8)} - {n for n, _ in self._model.topics.values()}
        )
        if not free:
            return
        topic_id, name = self._uuid(), self._dice.choice(free)
        self._write(TopicRecord(name, topic_id))
        partitions: dict[int, int] = {}
        self._model.topics[topic_id] = (name, partitions)
        numbers = list(range(self._dice.randint(1, 5)))
        if self._dice.random() < 0.2:
            self._dice.shuffle(numbers)
        for number in numbers:
            self._write_partition(topic_id, number)

    def _write_partition(self, topic_id: bytes, number: int) -> None:
        replicas = self._some(4) or (0,)
        self._model.topics[topic_id][1][number] = len(replicas)
        directories = tuple(self._uuid() for _ in replicas)
        self._write(
            PartitionRecord(
                number,
                topic_id,
                replicas,
                replicas[:2],
                self._some(1),
                self._some(1),
                self._dice.choice((-1, replicas[0])),
                self._dice.randint(0, 9),
                self._dice.randint(0, 9),
                self._dice.randint(0, 1),
                self._dice.choice(((), directories)),
                self._dice.choice((None, (), replicas[2:])),
                self._dice.choice((None, (), replicas[:1])),
            )
        )

    def _some_partition(self) -> tuple[bytes, int] | None:
        keys = [(t, p) for t, (_, parts) in sorted(self._model.topics.items()) for p in parts]
        return self._dice.choice(keys) if keys else None

    def _rewrite_partition(self) -> None:
        key = self._some_partition()
        if key is not None:
            self._write_partition(*key)

    def _change_partition(self) -> None:
        key = self._some_partition()
        if key is None:
            return
        topic_id, number = key
        partitions = self._model.topics[topic_id][1]
        replicas = directories = None
        if self._dice.random() < 0.2:
            replicas = self._some(4) or (1,)
            partitions[number] = len(replicas)
            directories = tuple(self._uuid() for _ in replicas)
        elif self._dice.random() < 0.2:
            directories = tuple(self._uuid() for _ in range(partitions[number]))
        self._write(
            PartitionChangeRecord(
                number,
                topic_id,
                self._dice.choice((None, self._some(3))),
                self._dice.choice((-2, -2, -1, self._some_broker())),
                replicas,
                self._dice.choice((None, (), self._some(2))),
                self._dice.choice((None, (), self._some(2))),
                self._dice.choice((-1, 0, 1)),
                directories,
                self._dice.choice((None, (), self._some(2))),
                self._dice.choice((None, (), self._some(1))),
            )
        )

    def _clear_elr(self) -> None:
        names = sorted(name for name, _ in self._model.topics.values())
        self._write(ClearElrRecord(self._dice.choice(("", *names))))

    def _remove_topic(self) -> None:
        if self._model.topics:
            topic_id = self._dice.choice(sorted(self._model.topics))
            del self._model.topics[topic_id]
            self._write(RemoveTopicRecord(topic_id))

    def _config(self) -> None:
        kind, name = self._dice.choice(((2, f"topic-{self._dice.randrange(8)}"), (4, ""), (4, "1")))
        value = self._dice.choice((None, "", "1", "delete"))
        key = self._dice.choice(("retention.ms", "cleanup.policy", "min.insync.replicas"))
        self._write(ConfigRecord(kind, name, key, value))

    def _quota(self) -> None:
        parts = [
            EntityData("user", self._dice.choice((None, "", "alice"))),
            EntityData("client-id", self._dice.choice((None, "app"))),
        ]
        self._dice.shuffle(parts)
        entity = tuple(parts[: self._dice.randint(1, 2)])
        value = self._dice.choice((1.0, 0.5, 1e9))
        remove = self._dice.random() < 0.3
        self._write(ClientQuotaRecord(entity, "producer_byte_rate", value, remove))

    def _producer_ids(self) -> None:
        self._model.next_producer_id += 1000
        broker = self._some_broker()
        self._write(ProducerIdsRecord(broker, self._offset, self._model.next_producer_id))

    def _acl(self) -> None:
        if self._model.acls and self._dice.random() < 0.4:
            gone = self._model.acls.pop(self._dice.randrange(len(self._model.acls)))
            self._write(RemoveAccessControlEntryRecord(gone))
            return
        entry = self._uuid()
        self._model.acls.append(entry)
        self._write(AccessControlEntryRecord(entry, 2, "topic-1", 3, "User:alice", "*", 3, 3))

    def _credential(self) -> None:
        known = self._model.credentials
        if known and self._dice.random() < 0.3:
            key = self._dice.choice(sorted(known))
            known.remove(key)
            self._write(RemoveUserScramCredentialRecord(*key))
            return
        key = (self._dice.choice(("alice", "bob")), self._dice.choice((1, 2)))
        known.add(key)
        secrets = (self._uuid(), self._uuid(), self._uuid())
        self._write(UserScramCredentialRecord(*key, *secrets, 4096))

    def _token(self) -> None:
        known = self._model.tokens
        if known and self._dice.random() < 0.3:
            gone = self._dice.choice(sorted(known))
            known.remove(gone)
            self._write(RemoveDelegationTokenRecord(gone))
            return
        token = self._dice.choice(("one", "two", "three"))
        known.add(token)
        times = (1, 2, self._dice.randint(3, 9))
        self._write(DelegationTokenRecord("User:a", "User:b", ("User:c",), *times, token))

    def _credential_in_log(self) -> None:
        """Make, change or forget an access token or a join token, or revoke certificates."""
        dice, model = self._credential_dice, self._model
        kind, removes = dice.randrange(3), dice.random() < 0.4
        token_id, sha256 = dice.choice(("aaaa", "bbbb", "cccc")), dice.randbytes(32)
        times = (1, dice.randint(2, 9), dice.choice((-1, 5)))
        if kind == 0:
            if removes and model.access_tokens:
                self._write(RemoveAccessTokenRecord(self._one_less(model.access_tokens)))
                return
            model.access_tokens.add(token_id)
            name, replaces = dice.choice(("", "ci")), dice.choice(("", "dddd"))
            by = ("User:b", *times, replaces)
            self._write(AccessTokenRecord(token_id, "User:a", name, sha256, *by))
        elif kind == 1:
            if removes and model.join_tokens:
                self._write(RemoveJoinTokenRecord(self._one_less(model.join_tokens)))
                return
            model.join_tokens.add(token_id)
            made = (dice.choice((1, 2)), dice.randrange(9), ("localhost",), "User:b")
            used = (dice.choice((-1, 4)), sha256[:4], b"")
            self._write(JoinTokenRecord(token_id, sha256, *made, *times, *used))
        else:
            if removes and model.revoked:
                self._write(RemoveCertificateRevocationRecord(*self._one_less(model.revoked)))
                return
            key = dice.choice(((1, "0A"), (1, "FF"), (2, "User:a"), (2, "Broker:1")))
            model.revoked.add(key)
            self._write(CertificateRevocationRecord(*key, times[2], "User:b", times[1]))

    def _one_less(self, known: set[Any]) -> Any:
        """Return one of them, which the model no longer knows."""
        gone = self._credential_dice.choice(sorted(known))
        known.remove(gone)
        return gone

    def _session(self) -> None:
        """Open a session, or end one with its entries; seldom lift the tokens."""
        known = self._model.sessions
        kind = self._dice.random()
        if kind < 0.1:
            self._model.token_base += self._dice.randint(1, 1000)
            self._write(TokenBaseRecord(self._model.token_base))
        elif known and kind < 0.5:
            session = self._dice.choice(sorted(known))
            for entry in known.pop(session):
                self._write(RemoveEntryRecord(entry.kind, entry.name, entry.id, session))
            self._write(EndSessionRecord(session, self._dice.randint(1, 3)))
        else:
            session = self._uuid()
            known[session] = []
            ttl_ms = self._dice.randint(500, 10_000)
            self._write(SessionRecord(session, ttl_ms, "User:a", "worker", self._next_offset()))

    def _bridge(self) -> None:
        """Change the mode of the bridge, or what the source knows of a broker."""
        known, dice = self._model.legacy_brokers, self._dice
        broker = dice.randrange(4)
        if dice.random() < 0.5:
            mode, revision = dice.randrange(4), dice.randrange(2**40)
            times = (dice.choice((-1, 7)), dice.randrange(2**40))
            self._write(BridgeRecord(mode, "zookeeper://zk:2181", "c", revision, *times, "User:a"))
            return
        remove = broker in known and dice.random() < 0.5
        (known.discard if remove else known.add)(broker)
        rack = dice.choice((None, "r1"))
        self._write(LegacyBrokerRecord(broker, dice.randrange(99), ("A://b:1",), rack, remove))

    def _attempts(self) -> None:
        """Report refused attempts, of few controllers that start often."""
        dice = self._attempt_dice
        controller = dice.randrange(2)
        life = bytes([controller, dice.randrange(12)]) * 8
        number = dice.randrange(1, 9)
        who = dice.choice(("User:mallory", "", "*"))
        first = self._timestamp_ms - dice.randrange(9)
        times = (first, first + dice.randrange(9), dice.randrange(1, 99), dice.randrange(99, 999))
        what = dice.choice((("create_topics", "topic:a"), ("login", "user:alice"), ("*", "")))
        where = dice.choice(("10.0.0.7", "2001:db8::/64", "*"))
        why = ("CLUSTER_AUTHORIZATION_FAILED", "CREATE on TOPIC a")
        sample = dice.choice((("", "", "", ""), ("POST /v1/topics", "c", "0" * 64, "403: no")))
        outcome, detail = dice.randint(1, 3), 3 if sample[0] else 1
        through = dice.choice(("", "Broker:7"))
        said = (
            controller,
            life,
            number,
            outcome,
            detail,
            who,
            through,
            "token",
            *what,
            where,
            *why,
        )
        self._write(AttemptsRecord(*said, *times, *sample))

    def _head(self) -> None:
        """Change a key that signs heads, or sign one. No signature here is right."""
        known, dice = self._model.head_keys, self._head_dice
        if dice.random() < 0.4:
            self._model.head_size += dice.randint(1, 500)
            signatures = tuple(
                HeadSignature(voter, dice.randbytes(32), dice.randbytes(64))
                for voter in range(dice.randint(0, 2))
            )
            size = self._model.head_size
            self._write(SignedHeadRecord("logberg/h", size, dice.randbytes(32), signatures))
            return
        voter = dice.randrange(3)
        cause = dice.choice(list(HeadKeyCause)) if voter in known else HeadKeyCause.REGISTERED
        (known.discard if cause == HeadKeyCause.REMOVED else known.add)(voter)
        signed = dice.randbytes(64) if cause == HeadKeyCause.ROTATED else b""
        key = dice.randbytes(32)
        self._write(HeadKeyRecord(voter, bytes([voter]) * 16, int(cause), key, signed, signed))

    def _entry(self) -> None:
        """Enter somewhere, change or grant an entry, or leave."""
        known = self._model.sessions
        if not known:
            return
        held = known[self._dice.choice(sorted(known))]
        session = next(key for key, entries in known.items() if entries is held)
        offset = self._next_offset()
        if held and self._dice.random() < 0.6:
            place = self._dice.randrange(len(held))
            entry = held[place]
            if self._dice.random() < 0.5:
                del held[place]
                self._write(RemoveEntryRecord(entry.kind, entry.name, entry.id, session))
                return
            token = offset if entry.token < 0 else entry.token
            held[place] = msgspec.structs.replace(
                entry, data=self._dice.randbytes(3), token=token, revision=offset
            )
            self._write(held[place])
            return
        kind = self._dice.randint(1, 3)
        token = self._dice.choice((offset, -1))
        named = (kind, self._dice.choice(("n", "n/m")), f"id-{offset}", session)
        held.append(EntryRecord(*named, b"", kind == 3, offset, token, offset))
        self._write(held[-1])

    def _key(self) -> None:
        known, offset = self._model.keys, self._next_offset()
        if known and self._dice.random() < 0.3:
            gone = self._dice.choice(sorted(known))
            del known[gone]
            self._write(RemoveKeyRecord(gone))
            return
        key = self._dice.choice(("a", "a/b", "é", "z"))
        before = known.get(key)
        created = offset if before is None else before.create_revision
        version = 1 if before is None else before.version + 1
        value = self._dice.randbytes(self._dice.randint(0, 20))
        known[key] = KeyRecord(key, value, created, offset, version)
        self._write(known[key])

    def _feature(self) -> None:
        if self._dice.random() < 0.2:
            self._write(ZkMigrationStateRecord(self._dice.randint(0, 3)))
            return
        name = self._dice.choice(("metadata.version", "group.version", "logberg.version"))
        level = self._dice.randint(0, 25)
        highest = SUPPORTED[name].high if name in SUPPORTED else level
        self._write(FeatureLevelRecord(name, min(level, highest)))

    def _quorum(self) -> None:
        kind = self._dice.random()
        if kind < 0.4:
            voters = tuple(
                Voter(
                    voter,
                    bytes([voter]) * 16,
                    (VoterEndpoint("CONTROLLER", f"controller-{voter}", 9093),),
                    VoterKRaftVersions(0, 1),
                )
                for voter in range(self._dice.randint(1, 3))
            )
            self._write(VotersRecord(voters))
        elif kind < 0.7:
            self._write(KRaftVersionRecord(self._dice.randint(0, 1)))
        elif kind < 0.9:
            self._write(ClusterGenerationRecord(self._dice.randint(1, 5), "recovered"))
        else:
            drawn = self._dice.randint(0, 3)
            self._write(ClusterKeyRecord(bytes([drawn]) * 8))
            self._write(SubjectKeysRecord(bytes([drawn]) * 8, bytes([drawn]) * 8))
            number = self._timestamp_ms.to_bytes(8, "big")
            self._write(SubjectErasedRecord(f"user:u{drawn}", (number, bytes([drawn]) * 8)))
            self._pseudonyms(bytes([drawn]))

    def _pseudonyms(self, drawn: bytes) -> None:
        """Give two people pseudonyms, and erase one of them."""
        self._given += 1
        kept, erased = (bytes([each]) + self._given.to_bytes(7, "big") for each in (1, 2))
        for person in (kept, erased):
            self._write(PseudonymRecord(pseudonym_of(person), b"sealed" + drawn))
        self._write(SubjectErasedRecord(f"user:{pseudonym_of(erased)}", (erased, drawn * 8)))

    def _no_op(self) -> None:
        self._write(NoOpRecord())

    def _outcome(self) -> None:
        drawn_ms = self._timestamp_ms - self._dice.randint(0, 1000)
        key = drawn_ms.to_bytes(6, "big") + b"\x70" + self._dice.randbytes(9)
        answer = self._dice.randbytes(self._dice.randint(0, 40))
        digest = self._dice.randbytes(32)
        self._write(RequestOutcomeRecord(key, digest, answer, self._timestamp_ms))
