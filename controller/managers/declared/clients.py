"""Compares declared quotas, access control entries and credentials with those of an image."""

from collections.abc import Mapping, Sequence
from typing import Final

from controller.managers.clients.acls import AclManager, checked_content, describe_acl
from controller.managers.clients.quotas import alter_quotas, describe_entity
from controller.managers.clients.scram import ScramManager, mechanism_name
from controller.managers.declared.plan import (
    CHANGE,
    CREATE,
    NONE,
    REMOVE,
    STEP,
    ApplyPlan,
    Item,
    Working,
    invalid,
)
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.image.acls import content_of
from metadata.messages import (
    DEFAULT_ITERATIONS,
    AclEntry,
    AlterQuotasReply,
    AlterQuotasRequest,
    AlterScramReply,
    AlterScramRequest,
    CreateAclsReply,
    CreateAclsRequest,
    DeclaredCredential,
    DeclaredQuotas,
    QuotaAlteration,
    QuotaEntityPart,
    QuotaOperation,
    ScramDeletion,
    ScramUpsertion,
)
from metadata.messages.declared_names import acl_name, quotas_name
from metadata.messages.scram import MECHANISMS
from metadata.records import EntityData, EntityKey, RemoveAccessControlEntryRecord, entity_key

_SIZES: Final = {"SCRAM-SHA-256": 32, "SCRAM-SHA-512": 64}


def compare_quotas(
    plan: ApplyPlan, image: MetadataImage, declared: Sequence[DeclaredQuotas], *, prune: bool
) -> Working:
    """Compare quotas. With `prune` no other quota stays."""
    wanted = {_key_of(each): each for each in declared}
    alterations, items = [], []
    for each in declared:
        item = plan.item("quotas", quotas_name(each.entity))
        alterations.append(_alteration(image, item, each.entity, each.quotas, prune=prune))
        items.append(item)
        if len(items) % STEP == 0:
            yield
    if prune:
        for number, key in enumerate(image.client_quotas.order, 1):
            if key not in wanted:
                item = plan.item("quotas", quotas_name(describe_entity(key)))
                parts = tuple(QuotaEntityPart(kind, n[0] if n else None) for kind, n in key)
                alterations.append(_alteration(image, item, parts, {}, prune=True))
                item.action = REMOVE
                items.append(item)
            if number % STEP == 0:
                yield
    if not alterations:
        return
    result = yield from alter_quotas(image, AlterQuotasRequest(tuple(alterations)))
    reply = result.reply
    assert isinstance(reply, AlterQuotasReply)
    for item, altered in zip(items, reply.entries, strict=True):
        item.refuse(altered.error)
    plan.add(result)


def _alteration(
    image: MetadataImage,
    item: Item,
    entity: tuple[QuotaEntityPart, ...],
    wanted: Mapping[str, float | None],
    *,
    prune: bool,
) -> QuotaAlteration:
    """Note how the quotas of one entity differ, and return all operations on it."""
    before = image.client_quotas.of(*(EntityData(p.entity_type, p.entity_name) for p in entity))
    after: dict[str, float | None] = dict(sorted(wanted.items()))
    if prune:
        after |= dict.fromkeys(sorted(before.keys() - wanted.keys()))
    for key, value in after.items():
        if before.get(key) != value:
            item.differs(key, _number(before.get(key)), _number(value))
    if item.action == CHANGE and not before:
        item.action = CREATE
    operations = tuple(QuotaOperation(key, value) for key, value in after.items())
    return QuotaAlteration(entity, operations)


def compare_acls(
    plan: ApplyPlan,
    image: MetadataImage,
    acls: AclManager,
    declared: Sequence[AclEntry],
    *,
    prune: bool,
) -> Working:
    """Compare access control entries. With `prune` no other entry stays."""
    if declared:
        result = yield from acls.create(image, CreateAclsRequest(tuple(declared)))
        reply = result.reply
        assert isinstance(reply, CreateAclsReply)
        for number, (entry, created) in enumerate(zip(declared, reply.acls, strict=True), 1):
            new = created.error is None and not created.existed
            plan.item("acl", acl_name(entry), CREATE if new else NONE).refuse(created.error)
            if number % STEP == 0:
                yield
        plan.add(result)
    if not prune:
        return
    kept = set()
    for number, entry in enumerate(declared):
        try:
            kept.add(checked_content("", entry))
        except LogbergError:
            continue
        if number % STEP == 0:
            yield
    removals = []
    for number, uuid in enumerate(image.acls.ids, 1):
        found = image.acls.entries[uuid]
        if content_of(found) not in kept:
            plan.items.append(Item("acl", acl_name(describe_acl(found)), REMOVE))
            removals.append(RemoveAccessControlEntryRecord(uuid))
        if number % STEP == 0:
            yield
    plan.add_records(removals)


def compare_users(
    plan: ApplyPlan,
    image: MetadataImage,
    scram: ScramManager,
    declared: Sequence[DeclaredCredential],
    *,
    prune: bool,
    dry_run: bool,
) -> Working:
    """Compare SCRAM credentials. With `prune` no other credential stays."""
    upsertions, deletions = [], []
    items: list[tuple[str, Item]] = []
    for number, wanted in enumerate(declared, 1):
        item = plan.item("user", f"{wanted.name} {wanted.mechanism}")
        if _sets(image, item, wanted, dry_run=dry_run):
            upsertions.append(_upsertion(wanted))
            items.append((wanted.name, item))
        if number % STEP == 0:
            yield
    if prune:
        kept = {(each.name, MECHANISMS.get(each.mechanism)) for each in declared}
        for number, key in enumerate(image.scram.order, 1):
            if key not in kept:
                item = plan.item("user", f"{key[0]} {mechanism_name(key[1])}", REMOVE)
                deletions.append(ScramDeletion(key[0], mechanism_name(key[1])))
                items.append((key[0], item))
            if number % STEP == 0:
                yield
    if not items:
        return
    request = AlterScramRequest(tuple(upsertions), tuple(deletions))
    result = yield from scram.alter(image, request)
    reply = result.reply
    assert isinstance(reply, AlterScramReply)
    errors = {user.name: user.error for user in reply.users}
    for name, item in items:
        item.refuse(errors[name])
    plan.add(result)


def _sets(image: MetadataImage, item: Item, wanted: DeclaredCredential, *, dry_run: bool) -> bool:
    """Note how a credential differs. Return whether the manager is to set it."""
    code = MECHANISMS.get(wanted.mechanism)
    found = None if code is None else image.scram.credentials.get((wanted.name, code))
    iterations = DEFAULT_ITERATIONS if wanted.iterations is None else wanted.iterations
    before = None if found is None else found.iterations
    if found is not None and not wanted.rewrite:
        if wanted.iterations not in (None, before):
            item.differs("iterations", before, wanted.iterations)
            item.refuse(
                invalid(
                    f"user {wanted.name!r}: the credential exists, and its iterations change only "
                    "with its password: ask for that (--rewrite-passwords)",
                    ErrorCode.UNACCEPTABLE_CREDENTIAL,
                )
            )
        return False
    if found is None:
        item.action = CREATE
    if before != iterations:
        item.differs("iterations", before, iterations)
    item.differs("password", None if found is None else "(kept)", "(set)")
    if not wanted.salted_password and not dry_run:
        item.refuse(
            invalid(
                f"user {wanted.name!r}, saltedPassword: it is missing, and the credential is to "
                "be set",
                ErrorCode.UNACCEPTABLE_CREDENTIAL,
            )
        )
        return False
    return True


def _upsertion(wanted: DeclaredCredential) -> ScramUpsertion:
    """Return the request to set a credential. A dry run may come without the secrets."""
    return ScramUpsertion(
        wanted.name,
        wanted.mechanism,
        DEFAULT_ITERATIONS if wanted.iterations is None else wanted.iterations,
        wanted.salt or b"\0",
        wanted.salted_password or bytes(_SIZES.get(wanted.mechanism, 0)),
    )


def _key_of(declared: DeclaredQuotas) -> EntityKey:
    return entity_key(tuple(EntityData(p.entity_type, p.entity_name) for p in declared.entity))


def _number(value: float | None) -> str | None:
    """Return a quota as one writes it: a whole number without a point."""
    if value is None:
        return None
    return str(int(value)) if value.is_integer() else repr(value)
