"""Explains why a partition or a broker is as it is: what the state says, in sentences.

These are pure functions of an image and of the leader's heartbeat table. Who asked for the changes
that led here is in the log; `logberg explain` looks there.
"""

from collections.abc import Iterator

import msgspec

from controller.http.clients.asked import Asked, ReadContext
from controller.http.describe import broker_state, describe_partition, readable_offset
from controller.http.node_view import View
from controller.http.queries import broker_id_of, whole_number
from controller.http.replicas.lists import known_partition
from controller.leader.heartbeats import Heartbeats
from controller.managers.directories import directory_of, is_online
from controller.managers.topic_rules import TopicRules, defaults_of
from metadata.errors import ErrorCode, LogbergError
from metadata.image import BrokerRegistration, MetadataImage, Partition
from metadata.image.brokers import is_cordoned
from metadata.messages import (
    BrokerStateName,
    DescribePartitionReply,
    ExplainBrokerReply,
    Explanation,
)
from metadata.records import NO_LEADER, LeaderRecoveryState
from metadata.uuids import uuid_text


def one_partition(view: View, asked: Asked, context: ReadContext) -> DescribePartitionReply:
    """`GET /v1/partitions/{topic}/{partition}`. Raises LogbergError."""
    image = view.image
    wanted = whole_number(asked.arguments, "partition", 0)
    topic, partition = known_partition(image, asked.arguments["topic"], wanted)
    rules = TopicRules(image, defaults_of(context.config))
    unclean = rules.unclean(topic.topic_id)
    min_isr = rules.of(topic.topic_id, partition).min_isr
    return DescribePartitionReply(
        offset=readable_offset(image),
        epoch=image.epoch,
        age_ms=view.age_ms,
        topic=topic.name,
        topic_id=uuid_text(topic.topic_id),
        partition=describe_partition(image, wanted, partition),
        findings=tuple(_of_partition(view, partition, min_isr, unclean=unclean)),
    )


def explain_broker(view: View, asked: Asked, _context: ReadContext) -> ExplainBrokerReply:
    """`GET /v1/brokers/{id}/explain`. Raises LogbergError."""
    reply = _explained_broker(view, asked)
    if view.heard is not None:
        return reply
    about = f"broker:{reply.broker_id}"
    said = "this controller does not lead, so it knows nothing of heartbeats; ask the leader"
    findings = (Explanation(about=about, says=said), *reply.findings)
    return msgspec.structs.replace(reply, findings=findings)


def explain_past_broker(view: View, asked: Asked, _context: ReadContext) -> ExplainBrokerReply:
    """Explain a broker from an image of the past. Raises LogbergError."""
    reply = _explained_broker(view, asked)
    if reply.state == BrokerStateName.ONLINE:
        return reply
    about = f"broker:{reply.broker_id}"
    said = "heartbeats are not in the log, so whether it was heard from then is not known"
    found = reply.findings or (Explanation(about=about, says=f"it is {reply.state}"),)
    findings = (*found, Explanation(about=about, says=said))
    return msgspec.structs.replace(reply, findings=findings)


def _explained_broker(view: View, asked: Asked) -> ExplainBrokerReply:
    image, text = view.image, asked.arguments["id"]
    broker = image.cluster.brokers.get(broker_id_of(text))
    if broker is None:
        raise LogbergError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"there is no broker {text[:20]}")
    return ExplainBrokerReply(
        offset=readable_offset(image),
        epoch=image.epoch,
        age_ms=view.age_ms,
        broker_id=broker.broker_id,
        state=broker_state(broker, view.heard).value,
        findings=tuple(_of_broker(image, broker, view.heard)),
    )


def _of_partition(
    view: View, partition: Partition, min_isr: int, *, unclean: bool
) -> Iterator[Explanation]:
    if partition.leader == NO_LEADER:
        yield from _no_leader(view, partition, unclean=unclean)
    else:
        for replica in partition.replicas:
            if replica not in partition.isr:
                yield _out_of_sync(view, partition, replica)
        if partition.leader != partition.replicas[0]:
            said = (
                f"broker {partition.leader} leads, and the preferred leader is broker "
                f"{partition.replicas[0]}: {_how_it_is(view, partition, partition.replicas[0])}"
            )
            yield Explanation(about="partition", says=said)
    if len(partition.isr) < min_isr:
        said = (
            f"{len(partition.isr)} replicas are in sync, and min.insync.replicas is {min_isr}: "
            "writes that need all replicas are refused"
        )
        yield Explanation(about="partition", says=said)
    if partition.leader_recovery_state == LeaderRecoveryState.RECOVERING:
        said = "its leader was elected uncleanly and has not recovered yet: the ISR can't grow"
        yield Explanation(about="partition", says=said)
    if partition.moving:
        yield _on_its_way(partition)


def _no_leader(view: View, partition: Partition, *, unclean: bool) -> Iterator[Explanation]:
    may_lead = partition.isr or partition.elr
    where = "in sync" if partition.isr else "eligible"
    said = f"it has no leader: of the replicas that are {where} ({_ids(may_lead)}) none can lead"
    yield Explanation(about="partition", says=said)
    for replica in partition.replicas:
        says = (
            f"broker {replica} is {where}"
            if replica in may_lead
            else (f"broker {replica} may lack writes, because it is not {where}")
        )
        yield Explanation(
            about=f"replica:{replica}", says=f"{says}; {_how_it_is(view, partition, replica)}"
        )
    said = f"it gets a leader when one of the brokers {_ids(may_lead)} comes online with its data"
    others = [b for b in partition.replicas if b not in may_lead and _can_serve(view, partition, b)]
    if others and not unclean:
        said += (
            f"; an unclean election could choose broker {others[0]} now, and would lose the "
            "writes that only the others have"
        )
    yield Explanation(about="partition", says=said)


def _out_of_sync(view: View, partition: Partition, replica: int) -> Explanation:
    said = f"broker {replica} is not in sync: {_how_it_is(view, partition, replica)}"
    if _can_serve(view, partition, replica):
        said += f"; the leader, broker {partition.leader}, adds it once it has caught up"
    return Explanation(about=f"replica:{replica}", says=said)


def _on_its_way(partition: Partition) -> Explanation:
    waits = [
        replica
        for replica in partition.replicas
        if replica not in partition.isr and replica not in partition.removing
    ]
    said = (
        f"it is being reassigned (adding {_ids(partition.adding)}, removing "
        f"{_ids(partition.removing)}), and waits for {_ids(waits)} to be in sync"
    )
    return Explanation(about="partition", says=said)


def _can_serve(view: View, partition: Partition, broker_id: int) -> bool:
    broker = view.image.cluster.brokers.get(broker_id)
    return (
        broker is not None
        and broker.active
        and is_online(broker, directory_of(partition, broker_id))
    )


def _how_it_is(view: View, partition: Partition, broker_id: int) -> str:
    """Say how a replica's broker is: part of a sentence."""
    broker = view.image.cluster.brokers.get(broker_id)
    if broker is None:
        return f"broker {broker_id} is not registered"
    if not is_online(broker, directory_of(partition, broker_id)):
        return f"the log directory of its replica on broker {broker_id} does not work"
    if broker.fenced:
        return f"broker {broker_id} is fenced{_silence(broker, view.heard)}"
    if broker.in_controlled_shutdown:
        return f"broker {broker_id} is stopping"
    return f"broker {broker_id} is online"


def _silence(broker: BrokerRegistration, heard: Heartbeats | None) -> str:
    silence = None if heard is None else heard.silence_s(broker.broker_id)
    return "" if silence is None else f" and was last heard {silence:.1f} s ago"


def _of_broker(
    image: MetadataImage, broker: BrokerRegistration, heard: Heartbeats | None
) -> Iterator[Explanation]:
    about = f"broker:{broker.broker_id}"
    if broker.fenced:
        yield Explanation(about=about, says=_why_fenced(broker, heard))
    elif broker.in_controlled_shutdown:
        yield from _why_not_stopped(image, broker, heard)
    if is_cordoned(broker):
        said = "all of its log directories are cordoned, so it gets no new replicas"
        yield Explanation(about=about, says=said)


def _why_fenced(broker: BrokerRegistration, heard: Heartbeats | None) -> str:
    if broker.in_controlled_shutdown:
        return "it is fenced because it has stopped in order; a new process of it has to register"
    if heard is None:
        return "it is fenced"
    silence, applied = heard.silence_s(broker.broker_id), heard.applied_offset(broker.broker_id)
    if not heard.is_alive(broker.broker_id, broker.broker_epoch):
        ago = "since this controller leads" if silence is None else f"for {silence:.1f} s"
        return f"it is fenced, and nothing was heard from it {ago}: start it, or its network"
    if applied <= broker.broker_epoch:
        return (
            f"it is fenced until it has applied its own registration, at offset "
            f"{broker.broker_epoch}; it said that it has applied everything before "
            f"{max(applied, 0)}"
        )
    return (
        "it is fenced and alive, and does not ask to be online: its host is not ready, or none of "
        "its log directories works"
    )


def _why_not_stopped(
    image: MetadataImage, broker: BrokerRegistration, heard: Heartbeats | None
) -> Iterator[Explanation]:
    about = f"broker:{broker.broker_id}"
    leads = image.topics.leads(broker.broker_id)
    if leads:
        said = f"it may not stop yet: it still leads {leads} partitions, and no other replica can"
        yield Explanation(about=about, says=said)
        return
    if heard is None:
        return
    wanted = broker.controlled_shutdown_offset
    for other in heard.behind(wanted):
        registered = image.cluster.brokers.get(other)
        if registered is not None and registered.active:
            said = (
                f"it may not stop yet: broker {other} has applied everything before "
                f"{max(heard.applied_offset(other), 0)}, and must reach {wanted} to know the new "
                "leaders"
            )
            yield Explanation(about=f"broker:{other}", says=said)


def _ids(brokers: tuple[int, ...] | list[int]) -> str:
    return ", ".join(map(str, brokers)) or "none"
