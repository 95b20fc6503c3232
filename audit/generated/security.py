"""Who may do what, and other settings of the cluster: ACLs, credentials, tokens, quotas, configs.

Rule: each is removed only if it exists, by what the model kept of it; privileged changes are told
as facts.
"""

from typing import Final

from audit.generated.pen import Written
from audit.generated.people import (
    ALICE,
    APPLICATIONS,
    BOB,
    ON_CALL,
    SECURITY,
    SERVICES,
    SPARK_JOBS,
    TOPIC_OPERATOR,
    VAULT,
    WHY,
    Actor,
    broker_actor,
    controller_actor,
)
from audit.generated.rhythm import DAY_MS, moment, office_hours
from audit.generated.stage import Stage
from metadata.records import (
    AccessControlEntryRecord,
    AclOperation,
    AclPatternType,
    AclPermissionType,
    AclResourceType,
    ClientQuotaRecord,
    ConfigRecord,
    ConfigResourceType,
    DelegationTokenRecord,
    EntityData,
    FeatureLevelRecord,
    NoOpRecord,
    ProducerIdsRecord,
    Record,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    ScramMechanism,
    UserScramCredentialRecord,
)

_BLOCK: Final = 1_000
"""Producer ids handed out at once."""
_DYNAMIC: Final = (
    ("follower.replication.throttled.rate", ("10485760", "52428800", "104857600")),
    ("num.io.threads", ("8", "16", "32")),
    ("log.cleaner.threads", ("1", "2", "4")),
    ("max.connections", ("2000", "5000")),
)
_QUOTAS: Final = ("producer_byte_rate", "consumer_byte_rate", "request_percentage")


class Security:
    """What happens to access, secrets, limits and settings."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._acls: list[tuple[bytes, str]] = []
        self._credentials: list[tuple[str, int]] = []
        self._tokens: dict[str, DelegationTokenRecord] = {}
        self._quotas: list[tuple[tuple[EntityData, ...], str]] = []
        self._tokens_made = 0
        self._producer_ids = 0
        self._levels: dict[str, int] = {}

    # ACLs.

    def allow(
        self,
        actor: Actor,
        principal: str,
        resource: tuple[int, str],
        operations: tuple[int, ...],
        reason: str,
        pattern: int = AclPatternType.LITERAL,
    ) -> Written:
        """Add ACLs for a principal."""
        dice = self._stage.dice
        kind, name = resource
        records: list[Record] = []
        for operation in operations:
            entry = AccessControlEntryRecord(
                dice.uuid(), kind, name, pattern, principal, "*", operation, AclPermissionType.ALLOW
            )
            self._acls.append((entry.id, principal))
            records.append(entry)
        written = self._stage.answer(actor, "CreateAcls", records, reason)
        for number in range(len(records)):
            self._tell(written, number, "acl", f"acl:{principal}", actor)
        return written

    def grant(self) -> None:
        """An application gets access to a topic."""
        dice = self._stage.dice
        topic = dice.pick(self._stage.cluster.partitions.items).topic.name
        actor = SECURITY if office_hours(self._stage.now_ms) else TOPIC_OPERATOR
        operations: tuple[int, ...] = (AclOperation.READ, AclOperation.DESCRIBE)
        if dice.chance(0.4):
            operations = (AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.IDEMPOTENT_WRITE)
        self.allow(
            actor,
            f"User:{dice.pick(APPLICATIONS)}",
            (AclResourceType.TOPIC, topic),
            operations,
            dice.pick(WHY["CreateAcls"]),
            AclPatternType.PREFIXED if dice.chance(0.2) else AclPatternType.LITERAL,
        )

    def revoke(self) -> None:
        """Access is taken away."""
        dice = self._stage.dice
        if len(self._acls) > 4:
            count = min(dice.between(1, 3), len(self._acls))
            gone = [self._acls.pop(dice.below(len(self._acls))) for _ in range(count)]
            self._remove(SECURITY, gone, dice.pick(WHY["DeleteAcls"]))

    def revoke_all_of(self, actor: Actor, principal: str, reason: str) -> Written | None:
        """Every ACL of a principal goes."""
        gone = [entry for entry in self._acls if entry[1] == principal]
        self._acls = [entry for entry in self._acls if entry[1] != principal]
        return self._remove(actor, gone, reason) if gone else None

    def _remove(self, actor: Actor, gone: list[tuple[bytes, str]], reason: str) -> Written:
        records = [RemoveAccessControlEntryRecord(entry) for entry, _ in gone]
        written = self._stage.answer(actor, "DeleteAcls", records, reason)
        for number, (_, principal) in enumerate(gone):
            self._tell(written, number, "acl", f"acl:{principal}", actor)
        return written

    # SCRAM and tokens.

    def set_password(self, actor: Actor = VAULT, user: str | None = None) -> None:
        """A credential is set or rotated."""
        dice = self._stage.dice
        name = user or dice.pick(APPLICATIONS)
        mechanism = dice.pick((ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512))
        key = (name, int(mechanism))
        if key not in self._credentials:
            self._credentials.append(key)
        length = 32 * key[1]
        record = UserScramCredentialRecord(
            *key,
            dice.some_bytes(20),
            dice.some_bytes(length),
            dice.some_bytes(length),
            dice.pick((4096, 8192)),
        )
        reason = dice.pick(WHY["AlterUserScramCredentials"])
        written = self._stage.answer(actor, "AlterUserScramCredentials", [record], reason)
        self._tell(written, 0, "scram", f"user:{name}", actor)

    def rotate_all(self) -> None:
        """Every application gets a new password."""
        for name in APPLICATIONS:
            self.set_password(VAULT, name)

    def remove_password(self) -> None:
        """A credential is removed."""
        dice = self._stage.dice
        if len(self._credentials) > 3:
            key = self._credentials.pop(dice.below(len(self._credentials)))
            record = RemoveUserScramCredentialRecord(*key)
            written = self._stage.answer(
                SECURITY, "AlterUserScramCredentials", [record], "moved to certificates"
            )
            self._tell(written, 0, "scram", f"user:{key[0]}", SECURITY)

    def token(self) -> None:
        """A delegation token is created or renewed; it expires one day."""
        stage, dice = self._stage, self._stage.dice
        now_ms = stage.now_ms
        if self._tokens and dice.chance(0.4):
            old = self._tokens[dice.pick(list(self._tokens))]
            expires = min(old.max_timestamp, now_ms + DAY_MS)
            token = DelegationTokenRecord(
                old.owner,
                old.requester,
                old.renewers,
                old.issue_timestamp,
                old.max_timestamp,
                expires,
                old.token_id,
            )
            operation = "RenewDelegationToken"
        else:
            self._tokens_made += 1
            owner = dice.pick((*SERVICES, SPARK_JOBS)).principal
            token = DelegationTokenRecord(
                owner,
                owner,
                ("User:spark-driver",),
                now_ms,
                now_ms + 7 * DAY_MS,
                now_ms + DAY_MS,
                f"token-{self._tokens_made:05d}",
            )
            operation = "CreateDelegationToken"
            token_id = token.token_id
            stage.after(DAY_MS + dice.around(DAY_MS), lambda: self._expire(token_id))
        self._tokens[token.token_id] = token
        stage.answer(SPARK_JOBS, operation, [token])

    def _expire(self, token_id: str) -> None:
        if self._tokens.pop(token_id, None) is not None:
            self._stage.write(
                controller_actor(self._stage.controller),
                "ExpireDelegationToken",
                [RemoveDelegationTokenRecord(token_id)],
                "it expired",
            )

    # Limits and settings.

    def quota(self) -> None:
        """A quota is set or lifted."""
        dice = self._stage.dice
        reason = dice.pick(WHY["AlterClientQuotas"])
        actor = BOB if office_hours(self._stage.now_ms) else ON_CALL
        if len(self._quotas) > 3 and dice.chance(0.3):
            entity, key = self._quotas.pop(dice.below(len(self._quotas)))
            record = ClientQuotaRecord(entity, key, 0.0, remove=True)
        else:
            entity = (EntityData("user", dice.pick((None, *APPLICATIONS))),)
            if dice.chance(0.3):
                entity = (*entity, EntityData("client-id", "batch"))
            key = dice.pick(_QUOTAS)
            if (entity, key) not in self._quotas:
                self._quotas.append((entity, key))
            value = 1_048_576.0 * dice.between(1, 64) if key.endswith("rate") else 200.0
            record = ClientQuotaRecord(entity, key, value, remove=False)
        self._stage.answer(actor, "AlterClientQuotas", [record], reason)

    def configure_broker(self) -> None:
        """A dynamic config of one broker or of all, sometimes a secret one."""
        stage, dice = self._stage, self._stage.dice
        broker = dice.pick(stage.cluster.active())
        if dice.chance(0.2):
            key, value = "listener.name.clients.ssl.keystore.password", dice.some_bytes(9).hex()
            record = ConfigRecord(ConfigResourceType.BROKER, str(broker.id), key, value)
            stage.answer(VAULT, "IncrementalAlterConfigs", [record], "certificate renewed")
            return
        key, values = dice.pick(_DYNAMIC)
        name = "" if dice.chance(0.4) else str(broker.id)
        value_or_none = None if dice.chance(0.2) else dice.pick(values)
        record = ConfigRecord(ConfigResourceType.BROKER, name, key, value_or_none)
        actor = dice.pick((ALICE, BOB)) if office_hours(stage.now_ms) else ON_CALL
        reason = dice.pick(WHY["ConfigBroker"])
        stage.answer(actor, "IncrementalAlterConfigs", [record], reason)

    def default_min_isr(self) -> None:
        """The cluster's default of min.insync.replicas is changed."""
        value = self._stage.dice.pick(("1", "2"))
        record = ConfigRecord(ConfigResourceType.BROKER, "", "min.insync.replicas", value)
        self._stage.answer(ALICE, "IncrementalAlterConfigs", [record], "default durability, RFC-12")

    def producer_ids(self) -> None:
        """A broker asks for a block of producer ids."""
        stage = self._stage
        broker = stage.dice.pick(stage.cluster.active())
        self._producer_ids += _BLOCK
        record = ProducerIdsRecord(broker.id, broker.epoch, self._producer_ids)
        caller = broker_actor(broker.id, broker.rack)
        stage.write(caller, "AllocateProducerIds", [record])

    def no_op(self) -> None:
        """The controller moves the log's end."""
        stage = self._stage
        stage.write(controller_actor(stage.controller), "NoOp", [NoOpRecord()])

    def feature(self, name: str, level: int, actor: Actor, reason: str) -> Written:
        """A feature is set to a level."""
        before = self._levels.get(name, 0)
        self._levels[name] = level
        written = self._stage.answer(
            actor, "UpdateFeatures", [FeatureLevelRecord(name, level)], reason
        )
        sentence = (
            f"{moment(self._stage.now_ms)}: {_name(actor)} raised {name} from {before} to {level}."
            if before
            else ""
        )
        self._stage.pen.tell(
            "feature", f"feature:{name}", written, actor.principal, sentence, written
        )
        return written

    def _tell(self, written: Written, number: int, kind: str, subject: str, actor: Actor) -> None:
        offset = written.base_offset + number
        one = written._replace(base_offset=offset, end_offset=offset + 1)
        self._stage.pen.tell(kind, subject, one, actor.principal, until=one)


def _name(actor: Actor) -> str:
    return actor.principal.removeprefix("User:")
