"""Who may do what, and other settings of the cluster: ACLs, credentials, tokens, quotas, configs.

Rule: what is removed is what somebody has added; who does what is settled by people's offices.
"""

from typing import Any, Final

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
)
from audit.generated.rhythm import DAY_MS, office_hours
from audit.generated.stage import Stage
from audit.generated.topics import set_configs
from metadata import messages

_DYNAMIC: Final = (
    ("follower.replication.throttled.rate", ("10485760", "52428800", "104857600")),
    ("num.io.threads", ("8", "16", "32")),
    ("log.cleaner.threads", ("1", "2", "4")),
    ("max.connections", ("2000", "5000")),
)
_KEYSTORE: Final = "listener.name.clients.ssl.keystore.password"
_QUOTAS: Final = ("producer_byte_rate", "consumer_byte_rate", "request_percentage")
_MECHANISMS: Final = (("SCRAM-SHA-256", 32), ("SCRAM-SHA-512", 64))
_READS: Final = ("READ", "DESCRIBE")
_WRITES: Final = ("WRITE", "DESCRIBE", "DESCRIBE_CONFIGS")

# ACLs.


def allow(
    stage: Stage,
    actor: Actor,
    principal: str,
    resource: tuple[str, str],
    operations: tuple[str, ...],
    reason: str,
    pattern: str = "LITERAL",
) -> None:
    """Add ACLs for a principal; those that are there already stay one."""
    entries = [
        messages.AclEntry(*resource, principal, operation, pattern_type=pattern)
        for operation in operations
    ]
    stage.ask(actor, "create_acls", messages.CreateAclsRequest(tuple(entries)), reason)
    stage.cast.acls += [entry for entry in entries if entry not in stage.cast.acls]


def grant(stage: Stage) -> None:
    """An application gets access to a topic."""
    dice = stage.dice
    topic = dice.pick(stage.cast.topics).name
    actor = SECURITY if office_hours(stage.now_ms) else TOPIC_OPERATOR
    operations = _WRITES if dice.chance(0.4) else _READS
    principal, reason = f"User:{dice.pick(APPLICATIONS)}", dice.pick(WHY["CreateAcls"])
    pattern = "PREFIXED" if dice.chance(0.2) else "LITERAL"
    allow(stage, actor, principal, ("TOPIC", topic), operations, reason, pattern)


def revoke(stage: Stage) -> None:
    """Access is taken away."""
    dice, acls = stage.dice, stage.cast.acls
    if len(acls) > 4:
        count = min(dice.between(1, 3), len(acls))
        gone = [acls.pop(dice.below(len(acls))) for _ in range(count)]
        _remove(stage, SECURITY, gone, dice.pick(WHY["DeleteAcls"]))


def revoke_all_of(stage: Stage, actor: Actor, principal: str, reason: str) -> None:
    """Every ACL of a principal goes."""
    acls = stage.cast.acls
    gone = [entry for entry in acls if entry.principal == principal]
    stage.cast.acls = [entry for entry in acls if entry.principal != principal]
    if gone:
        _remove(stage, actor, gone, reason)


def _remove(stage: Stage, actor: Actor, gone: list[messages.AclEntry], reason: str) -> None:
    filters = tuple(
        messages.AclFilter(
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
    stage.ask(actor, "delete_acls", messages.DeleteAclsRequest(filters), reason)


# SCRAM and tokens.


def set_password(stage: Stage, actor: Actor = VAULT, user: str | None = None) -> None:
    """A credential is set or rotated."""
    dice, credentials = stage.dice, stage.cast.credentials
    name = user or dice.pick(APPLICATIONS)
    mechanism, length = dice.pick(_MECHANISMS)
    if (name, mechanism) not in credentials:
        credentials.append((name, mechanism))
    iterations, salt = dice.pick((4096, 8192)), dice.some_bytes(20)
    upsertion = messages.ScramUpsertion(name, mechanism, iterations, salt, dice.some_bytes(length))
    reason = dice.pick(WHY["AlterUserScramCredentials"])
    request = messages.AlterScramRequest(upsertions=(upsertion,))
    stage.ask(actor, "alter_scram", request, reason)


def rotate_all(stage: Stage) -> None:
    """Every application gets a new password."""
    for name in APPLICATIONS:
        set_password(stage, VAULT, name)


def remove_password(stage: Stage) -> None:
    """A credential is removed."""
    credentials = stage.cast.credentials
    if len(credentials) > 3:
        deletion = messages.ScramDeletion(*credentials.pop(stage.dice.below(len(credentials))))
        request = messages.AlterScramRequest(deletions=(deletion,))
        stage.ask(SECURITY, "alter_scram", request, "moved to certificates")


def token(stage: Stage) -> None:
    """A delegation token is created or renewed; it expires one day."""
    dice, tokens = stage.dice, stage.cast.tokens
    if tokens and dice.chance(0.4):
        token_id = dice.pick(list(tokens))
        known = stage.image.tokens.tokens.get(token_id)
        if known is None or known.expiration_timestamp <= stage.now_ms:
            del tokens[token_id]
            return
        renewal = messages.RenewTokenRequest(tokens[token_id], DAY_MS)
        stage.ask(SPARK_JOBS, "renew_token", renewal, id=token_id)
        return
    request = messages.CreateTokenRequest(renewers=("User:spark-driver",))
    reply: Any = stage.ask(SPARK_JOBS, "create_token", request).reply
    tokens[reply.token.token_id] = reply.hmac


# Limits and settings.


def quota(stage: Stage) -> None:
    """A quota is set or lifted."""
    dice, quotas = stage.dice, stage.cast.quotas
    reason = dice.pick(WHY["AlterClientQuotas"])
    actor = BOB if office_hours(stage.now_ms) else ON_CALL
    value: float | None = None
    if len(quotas) > 3 and dice.chance(0.3):
        entity, key = quotas.pop(dice.below(len(quotas)))
    else:
        entity = (messages.QuotaEntityPart("user", dice.pick((None, *APPLICATIONS))),)
        if dice.chance(0.3):
            entity = (*entity, messages.QuotaEntityPart("client-id", "batch"))
        key = dice.pick(_QUOTAS)
        if (entity, key) not in quotas:
            quotas.append((entity, key))
        value = 1_048_576.0 * dice.between(1, 64) if key.endswith("rate") else 200.0
    alteration = messages.QuotaAlteration(entity, (messages.QuotaOperation(key, value),))
    stage.ask(actor, "alter_quotas", messages.AlterQuotasRequest((alteration,)), reason)


def configure_broker(stage: Stage) -> None:
    """A dynamic config of one broker or of all, sometimes a secret one."""
    dice = stage.dice
    name = str(dice.pick(stage.active).id)
    if dice.chance(0.2):
        secret = {_KEYSTORE: dice.some_bytes(9).hex()}
        set_configs(stage, VAULT, ("broker", name), {**secret}, "certificate renewed")
        return
    key, values = dice.pick(_DYNAMIC)
    name = "" if dice.chance(0.4) else name
    changes = {key: None if dice.chance(0.2) else dice.pick(values)}
    actor = dice.pick((ALICE, BOB)) if office_hours(stage.now_ms) else ON_CALL
    set_configs(stage, actor, ("broker", name), changes, dice.pick(WHY["ConfigBroker"]))


def default_min_isr(stage: Stage) -> None:
    """The cluster's default of min.insync.replicas is changed."""
    changes: dict[str, str | None] = {"min.insync.replicas": stage.dice.pick(("1", "2"))}
    set_configs(stage, ROOT, ("broker", ""), changes, "default durability, RFC-12")


def producer_ids(stage: Stage) -> None:
    """A broker asks for a block of producer ids."""
    broker = stage.dice.pick(stage.active)
    epoch = stage.image.cluster.brokers[broker.id].broker_epoch
    request = messages.AllocateProducerIdsRequest(broker.id, epoch)
    stage.ask(broker.actor(), "allocate_producer_ids", request)


def feature(stage: Stage, name: str, level: int, actor: Actor, reason: str) -> bool:
    """Raise a feature to a level; False: the cluster isn't ready for it."""
    update = messages.FeatureUpdate(name, level, messages.UpgradeType.UPGRADE)
    request = messages.UpdateFeaturesRequest((update,))
    return stage.may_ask(actor, "update_features", request, reason) is not None
