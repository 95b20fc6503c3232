"""Answers questions about replicas: which moves empty a broker, and what losing brokers would do.

Both look at every replica of the brokers in question, in steps, and send the entries as they are
found. So the cost grows with what these brokers hold.
"""

from collections.abc import Generator, Iterator, Mapping
from typing import Final

from controller.http.clients.asked import Asked, ReadContext
from controller.http.describe import readable_offset
from controller.http.node_view import View
from controller.http.queries import yes_or_no
from controller.managers.losses import Affected, Losses
from controller.managers.moves import EmptyingPlan
from controller.managers.topic_rules import defaults_of
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.key_runs import sorted_keys
from metadata.messages import LossReply, LostPartition, PlannedReassignment, PlanReply
from metadata.messages.parts import LongMessage
from metadata.messages.records_json import record_to_json
from metadata.partition_key import PlainPartitionKey

_BROKERS_MAX: Final = 1_000
Steps = Generator[None, None, LongMessage]


def plan_moves(view: View, asked: Asked, _context: ReadContext) -> Steps:
    """`GET /v1/reassignments/plan`. Raises LogbergError."""
    image = view.image
    brokers = _broker_ids(asked.request.query)
    if not brokers:
        raise LogbergError(ErrorCode.INVALID_REQUEST, "brokers: name those to empty, such as 3,4")
    plan = EmptyingPlan(image, brokers)
    head = PlanReply(
        offset=readable_offset(image),
        epoch=image.epoch,
        age_ms=view.age_ms,
        brokers=tuple(sorted(brokers)),
        partitions=(),
    )

    def planned(key: PlainPartitionKey) -> PlannedReassignment:
        move = plan.move(key)
        return PlannedReassignment(
            topic=image.topics.by_id[key[0]].name,
            partition=key[1],
            replicas=move.replicas,
            before=move.before,
        )

    def steps() -> Steps:
        found = yield from sorted_keys(plan.keys())
        return LongMessage(head, "partitions", map(planned, found.in_order()), len(found))

    return steps()


def lose_brokers(view: View, asked: Asked, context: ReadContext) -> Steps:
    """`GET /v1/what-if/loss`. Raises LogbergError."""
    image, query = view.image, asked.request.query
    lost = _lost(image, query)
    show_all = yes_or_no(query, "all")
    losses = Losses(image, lost, defaults_of(context.config))
    touched = changed = leaderless = under = 0

    def shown(affected: Affected) -> bool:
        bad = affected.leaderless or affected.under_min_isr
        return bad or (show_all and bool(affected.records))

    def counted() -> Iterator[PlainPartitionKey | None]:
        nonlocal touched, changed, leaderless, under
        for key in losses.held_keys():
            if key is None:
                yield None
                continue
            affected = losses.affected(key)
            touched += 1
            changed += bool(affected.records)
            leaderless += affected.leaderless
            under += affected.under_min_isr
            yield key if shown(affected) else None

    def steps() -> Steps:
        listed = yield from sorted_keys(counted())
        head = LossReply(
            offset=readable_offset(image),
            epoch=image.epoch,
            age_ms=view.age_ms,
            brokers=tuple(sorted(lost)),
            broker_changes=tuple(map(record_to_json, losses.of_brokers())),
            touched=touched,
            changed=changed,
            leaderless=leaderless,
            under_min_isr=under,
        )
        entries = (_lost_partition(image, losses.affected(key)) for key in listed.in_order())
        return LongMessage(head, "partitions", entries, len(listed))

    return steps()


def _lost_partition(image: MetadataImage, affected: Affected) -> LostPartition:
    topic_id, number = affected.key
    return LostPartition(
        topic=image.topics.by_id[topic_id].name,
        partition=number,
        leader=affected.before.leader,
        leader_after=affected.after.leader,
        isr=affected.before.isr,
        isr_after=affected.after.isr,
        leaderless=affected.leaderless,
        under_min_isr=affected.under_min_isr,
        changes=tuple(map(record_to_json, affected.records)),
    )


def _lost(image: MetadataImage, query: Mapping[str, str]) -> frozenset[int]:
    """Return the brokers of a question: those that it names, and those of a rack."""
    lost = set(_broker_ids(query))
    for broker_id in sorted(lost):
        if image.cluster.brokers.get(broker_id) is None:
            raise LogbergError(
                ErrorCode.BROKER_ID_NOT_REGISTERED, f"there is no broker {broker_id}"
            )
    rack = query.get("rack")
    if rack is not None:
        there = {b.broker_id for b in image.cluster.brokers.values() if b.rack == rack}
        if not there:
            raise LogbergError(
                ErrorCode.INVALID_REQUEST, f"rack: no broker is in rack {rack[:100]!r}"
            )
        lost |= there
    if not lost:
        raise LogbergError(
            ErrorCode.INVALID_REQUEST, "say which brokers are lost: brokers=3,4 or rack=b"
        )
    return frozenset(lost)


def _broker_ids(query: Mapping[str, str]) -> frozenset[int]:
    """Read `brokers=3,4`. Raises LogbergError."""
    text = query.get("brokers")
    if text is None:
        return frozenset()
    parts = text.split(",")
    fine = all(p.isascii() and p.isdecimal() and len(p) <= 10 for p in parts)
    if not fine or len(parts) > _BROKERS_MAX:
        raise LogbergError(
            ErrorCode.INVALID_REQUEST, f"brokers: {text[:50]!r}; give broker ids, such as 3,4"
        )
    return frozenset(map(int, parts))
