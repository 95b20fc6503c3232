"""Who may do what, and other settings of the cluster: ACLs, credentials, tokens, quotas, configs.

Rule: what is removed is what somebody has added; who does what is settled by people's offices.
"""

from typing import Any, Final

from audit.generated.cast import Cast
from audit.generated.people import (
    ALICE,
    APPLICATIONS,
    BOB,
    ON_CALL,
    ROOT,
    SECURITY,
    SPARK_JOBS,
    TOPIC_OPERATOR,
    VAULT,
    WHY,
    Actor,
    broker_actor,
)
from audit.generated.rhythm import DAY_MS, office_hours
from audit.generated.stage import Stage
from audit.generated.topics import config_change
from metadata.messages import (
    AclEntry,
    AclFilter,
    AllocateProducerIdsRequest,
    AlterConfigsRequest,
    AlterQuotasRequest,
    AlterScramRequest,
    ConfigResourceChange,
    CreateAclsRequest,
    CreateTokenRequest,
    DeleteAclsRequest,
    FeatureUpdate,
    QuotaAlteration,
    QuotaEntityPart,
    QuotaOperation,
    RenewTokenRequest,
    ScramDeletion,
    ScramUpsertion,
    UpdateFeaturesRequest,
    UpgradeType,
)

_DYNAMIC: Final = (
    ("follower.replication.throttled.rate", ("10485760", "52428800", "104857600")),
    ("num.io.threads", ("8", "16", "32")),
    ("log.cleaner.threads", ("1", "2", "4")),
    ("max.connections", ("2000", "5000")),
)
_QUOTAS: Final = ("producer_byte_rate", "consumer_byte_rate", "request_percentage")
_MECHANISMS: Final = (("SCRAM-SHA-256", 32), ("SCRAM-SHA-512", 64))


class Security:
    """What happens to access, secrets, limits and settings."""

    def __init__(self, stage: Stage, cast: Cast) -> None:
        self._stage = stage
        self._cast = cast
        self._acls: list[AclEntry] = []
        self._credentials: list[tuple[str, str]] = []
        self._tokens: dict[str, bytes] = {}
        self._quotas: list[tuple[tuple[QuotaEntityPart, ...], str]] = []

    # ACLs.

    def allow(
        self,
        actor: Actor,
        principal: str,
        resource: tuple[str, str],
        operations: tuple[str, ...],
        reason: str,
        pattern: str = "LITERAL",
    ) -> None:
        """Add ACLs for a principal; those that are there already stay one."""
        kind, name = resource
        entries = [
            AclEntry(kind, name, principal, operation, pattern_type=pattern)
            for operation in operations
        ]
        self._stage.ask(actor, "create_acls", CreateAclsRequest(tuple(entries)), reason)
        self._acls += [entry for entry in entries if entry not in self._acls]

    def grant(self) -> None:
        """An application gets access to a topic."""
        dice = self._stage.dice
        topic = dice.pick(self._cast.topics).name
        actor = SECURITY if office_hours(self._stage.now_ms) else TOPIC_OPERATOR
        operations: tuple[str, ...] = ("READ", "DESCRIBE")
        if dice.chance(0.4):
            operations = ("WRITE", "DESCRIBE", "DESCRIBE_CONFIGS")
        self.allow(
            actor,
            f"User:{dice.pick(APPLICATIONS)}",
            ("TOPIC", topic),
            operations,
            dice.pick(WHY["CreateAcls"]),
            "PREFIXED" if dice.chance(0.2) else "LITERAL",
        )

    def revoke(self) -> None:
        """Access is taken away."""
        dice = self._stage.dice
        if len(self._acls) > 4:
            count = min(dice.between(1, 3), len(self._acls))
            gone = [self._acls.pop(dice.below(len(self._acls))) for _ in range(count)]
            self._remove(SECURITY, gone, dice.pick(WHY["DeleteAcls"]))

    def revoke_all_of(self, actor: Actor, principal: str, reason: str) -> None:
        """Every ACL of a principal goes."""
        gone = [entry for entry in self._acls if entry.principal == principal]
        self._acls = [entry for entry in self._acls if entry.principal != principal]
        if gone:
            self._remove(actor, gone, reason)

    def _remove(self, actor: Actor, gone: list[AclEntry], reason: str) -> None:
        filters = tuple(
            AclFilter(
                each.resource_type,
                each.resource_name,
                each.pattern_type,
                each.principal,
                each.host,
                each.operation,
                each.permission_type,
            )
            for each in gone
        )
        self._stage.ask(actor, "delete_acls", DeleteAclsRequest(filters), reason)

    # SCRAM and tokens.

    def set_password(self, actor: Actor = VAULT, user: str | None = None) -> None:
        """A credential is set or rotated."""
        dice = self._stage.dice
        name = user or dice.pick(APPLICATIONS)
        mechanism, length = dice.pick(_MECHANISMS)
        if (name, mechanism) not in self._credentials:
            self._credentials.append((name, mechanism))
        upsertion = ScramUpsertion(
            name, mechanism, dice.pick((4096, 8192)), dice.some_bytes(20), dice.some_bytes(length)
        )
        reason = dice.pick(WHY["AlterUserScramCredentials"])
        self._stage.ask(actor, "alter_scram", AlterScramRequest(upsertions=(upsertion,)), reason)

    def rotate_all(self) -> None:
        """Every application gets a new password."""
        for name in APPLICATIONS:
            self.set_password(VAULT, name)

    def remove_password(self) -> None:
        """A credential is removed."""
        dice = self._stage.dice
        if len(self._credentials) > 3:
            name, mechanism = self._credentials.pop(dice.below(len(self._credentials)))
            request = AlterScramRequest(deletions=(ScramDeletion(name, mechanism),))
            self._stage.ask(SECURITY, "alter_scram", request, "moved to certificates")

    def token(self) -> None:
        """A delegation token is created or renewed; it expires one day."""
        stage, dice = self._stage, self._stage.dice
        alive = stage.image.tokens.tokens
        if self._tokens and dice.chance(0.4):
            token_id = dice.pick(list(self._tokens))
            token = alive.get(token_id)
            if token is None or token.expiration_timestamp <= stage.now_ms:
                del self._tokens[token_id]
                return
            renewal = RenewTokenRequest(self._tokens[token_id], DAY_MS)
            stage.ask(SPARK_JOBS, "renew_token", renewal, id=token_id)
            return
        request = CreateTokenRequest(renewers=("User:spark-driver",))
        reply: Any = stage.ask(SPARK_JOBS, "create_token", request).reply
        self._tokens[reply.token.token_id] = reply.hmac

    # Limits and settings.

    def quota(self) -> None:
        """A quota is set or lifted."""
        dice = self._stage.dice
        reason = dice.pick(WHY["AlterClientQuotas"])
        actor = BOB if office_hours(self._stage.now_ms) else ON_CALL
        if len(self._quotas) > 3 and dice.chance(0.3):
            entity, key = self._quotas.pop(dice.below(len(self._quotas)))
            operation = QuotaOperation(key, None)
        else:
            entity = (QuotaEntityPart("user", dice.pick((None, *APPLICATIONS))),)
            if dice.chance(0.3):
                entity = (*entity, QuotaEntityPart("client-id", "batch"))
            key = dice.pick(_QUOTAS)
            if (entity, key) not in self._quotas:
                self._quotas.append((entity, key))
            value = 1_048_576.0 * dice.between(1, 64) if key.endswith("rate") else 200.0
            operation = QuotaOperation(key, value)
        request = AlterQuotasRequest((QuotaAlteration(entity, (operation,)),))
        self._stage.ask(actor, "alter_quotas", request, reason)

    def configure_broker(self) -> None:
        """A dynamic config of one broker or of all, sometimes a secret one."""
        stage, dice = self._stage, self._stage.dice
        broker = dice.pick(self._cast.active(stage.image))
        if dice.chance(0.2):
            key, value = "listener.name.clients.ssl.keystore.password", dice.some_bytes(9).hex()
            self._set(VAULT, str(broker.id), key, value, "certificate renewed")
            return
        key, values = dice.pick(_DYNAMIC)
        name = "" if dice.chance(0.4) else str(broker.id)
        value_or_none = None if dice.chance(0.2) else dice.pick(values)
        actor = dice.pick((ALICE, BOB)) if office_hours(stage.now_ms) else ON_CALL
        self._set(actor, name, key, value_or_none, dice.pick(WHY["ConfigBroker"]))

    def default_min_isr(self) -> None:
        """The cluster's default of min.insync.replicas is changed."""
        value = self._stage.dice.pick(("1", "2"))
        self._set(ROOT, "", "min.insync.replicas", value, "default durability, RFC-12")

    def _set(self, actor: Actor, name: str, key: str, value: str | None, reason: str) -> None:
        resource = ConfigResourceChange("broker", name, (config_change(key, value),))
        self._stage.ask(actor, "alter_configs", AlterConfigsRequest((resource,)), reason)

    def producer_ids(self) -> None:
        """A broker asks for a block of producer ids."""
        stage = self._stage
        broker = stage.dice.pick(self._cast.active(stage.image))
        epoch = stage.image.cluster.brokers[broker.id].broker_epoch
        request = AllocateProducerIdsRequest(broker.id, epoch)
        stage.ask(broker_actor(broker.id, broker.rack), "allocate_producer_ids", request)

    def feature(self, name: str, level: int, actor: Actor, reason: str) -> bool:
        """Set a feature to a level; False: the cluster isn't ready for it."""
        before = self._stage.image.features.levels.get(name, 0)
        kind = UpgradeType.UPGRADE if level > before else UpgradeType.SAFE_DOWNGRADE
        request = UpdateFeaturesRequest((FeatureUpdate(name, level, kind),))
        answered = self._stage.may_ask(actor, "update_features", request, reason)
        return answered is not None
