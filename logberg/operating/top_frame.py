"""One frame of `logberg top`: controllers, brokers, and the newest changes, as tables.

Rule: a frame is made from what was read, without asking anybody. If there is too little room, the
nodes that need a look come first, and a line counts the others.
"""

import time
from collections.abc import Sequence
from typing import NamedTuple

from logberg.cli.output import Sheet, styled, table
from logberg.client.cluster_view import (
    ClusterView,
    ControllerView,
    is_leaders,
    member_progress,
    member_role,
)
from metadata.messages.brokers import BrokerDescription
from metadata.messages.log import BatchInWords
from metadata.messages.quorum import QuorumMember, QuorumReply
from metadata.pseudonyms import person_words

_HEADS = 9
"""Lines of titles, headings and blanks between the tables."""
_LEAST = 3


class TopView(NamedTuple):
    """What was read at one moment."""

    view: ClusterView
    quorum: QuorumReply | None
    """The leader's knowledge; None: nobody told."""
    changes: Sequence[BatchInWords]
    """The newest ones, the oldest first."""
    per_s: float | None
    """Records that were committed each second since the last moment; None: the first one."""


def frame(moment: TopView, height: int) -> list[Sheet | str]:
    """Return the tables of a frame that fits `height` lines."""
    view = moment.view
    lines = len(view.controllers) + len(_not_asked(moment))
    room = max(2 * _LEAST, height - _HEADS - lines)
    brokers = _ranked(view, moment.view.brokers)
    of_brokers = min(len(brokers), max(_LEAST, room // 2))
    of_changes = max(_LEAST, room - of_brokers)
    parts: list[Sheet | str] = [
        _title(moment),
        _controllers(moment),
        "",
        _brokers(view, brokers[:of_brokers]),
    ]
    if len(brokers) > of_brokers:
        parts.append(f"… and {len(brokers) - of_brokers} more brokers")
    return [*parts, "", _changes(moment.changes[-of_changes:])]


def _title(moment: TopView) -> str:
    view = moment.view
    active = "none" if view.active is None else f"controller {view.active}, epoch {view.epoch}"
    pace = "" if moment.per_s is None else f"   {moment.per_s:.1f} records/s"
    return f"cluster {view.cluster_id or '?'}   active: {active}{pace}"


def _controllers(moment: TopView) -> Sheet:
    members = {} if moment.quorum is None else {m.node_id: m for m in moment.quorum.members}
    seen = [_controller(one, moment, members) for one in moment.view.controllers]
    return table(
        ["controller", "role", "log end", "lag", "heard", "uptime", "note"],
        seen + [_told(member, moment) for member in _not_asked(moment)],
    )


def _controller(
    seen: ControllerView, moment: TopView, members: dict[int, QuorumMember]
) -> tuple[object, ...]:
    status = seen.status
    if status is None:
        return seen.name, styled(seen.role), "-", "-", "-", "-", seen.note
    member = members.get(status.node_id)
    standing = member is not None and member.is_standing
    role = "active" if seen.active else "standing observer" if standing else seen.role
    uptime = _span(status.uptime_ms / 1000)
    return seen.name, styled(role), status.log_end, *_lag(member, moment), uptime, status.note


def _not_asked(moment: TopView) -> list[QuorumMember]:
    """Members whose URL nobody named: often the observers."""
    asked = moment.view.controllers
    ids, urls = {seen.node_id for seen in asked}, {seen.url for seen in asked}
    members = () if moment.quorum is None else moment.quorum.members
    return [m for m in members if m.node_id not in ids and m.url not in urls]


def _told(member: QuorumMember, moment: TopView) -> tuple[object, ...]:
    role = styled(member_role(member, moment.view.active))
    return member.node_id, role, "-", *_lag(member, moment), "-", "not asked, the leader told of it"


def _lag(member: QuorumMember | None, moment: TopView) -> tuple[str, str]:
    """Entries behind the leader, and when it last answered. Only the leader knows."""
    quorum = moment.quorum
    if quorum is None or not is_leaders(quorum) or member is None:
        return "-", "-"
    _, lag = member_progress(member, quorum)
    own = member.node_id == quorum.node_id
    return str(lag), "itself" if own else _ago(member.last_contact_ms)


def _ranked(view: ClusterView, brokers: Sequence[BrokerDescription]) -> list[BrokerDescription]:
    """Those that need a look first: not online, then far behind."""
    end = _end(view)
    return sorted(
        brokers,
        key=lambda broker: (
            broker.state.value == "online",
            (broker.applied_offset or 0) - end if end is not None else 0,
            broker.broker_id,
        ),
    )


def _brokers(view: ClusterView, shown: Sequence[BrokerDescription]) -> Sheet:
    end = _end(view)
    return table(
        ["broker", "state", "leads", "replicas", "applied", "lag", "heard"],
        [
            (
                broker.broker_id,
                styled(broker.state.value),
                broker.leaders,
                broker.replicas,
                "-" if broker.applied_offset is None else str(broker.applied_offset),
                "-"
                if broker.applied_offset is None or end is None
                else str(max(0, end - broker.applied_offset)),
                _ago(broker.last_contact_ms),
            )
            for broker in shown
        ],
    )


def _changes(changes: Sequence[BatchInWords]) -> Sheet:
    return table(
        ["time", "offset", "who", "did", "records"],
        [
            (
                time.strftime("%H:%M:%S", time.gmtime(change.timestamp_ms / 1000)),
                change.offset,
                _who(change),
                change.operation or "-",
                _kinds(change),
            )
            for change in changes
        ],
    )


def _who(change: BatchInWords) -> str:
    if change.on_behalf_of:
        return person_words(change.on_behalf_of, change.on_behalf_of_name)
    return person_words(change.principal, change.principal_name)


def _kinds(change: BatchInWords) -> str:
    """Such as `3 PARTITION_RECORD, TOPIC_RECORD`."""
    counts: dict[str, int] = {}
    for record in change.records:
        counts[record.type] = counts.get(record.type, 0) + 1
    return ", ".join(f"{count} {kind}" if count > 1 else kind for kind, count in counts.items())


def _end(view: ClusterView) -> int | None:
    return None if view.leader is None else view.leader.log_end


def _ago(milliseconds: int | None) -> str:
    return "-" if milliseconds is None else f"{milliseconds / 1000:.1f} s ago"


def _span(seconds: float) -> str:
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} s"
