"""The watcher: events go in, findings come out.

Rule: what it gives depends on the events and on the log's time, never on how they were cut into
steps. So before each event, and at a step's end, it does what is due by then, in the order of time:
it closes findings that have gathered long enough, and tells of what has lasted too long.
"""

import heapq
from collections.abc import Iterable
from hashlib import sha256

import msgspec

from audit.findings.acquaintances import FIRST, SeenBefore
from audit.findings.events import AuditEvent
from audit.findings.finding import Finding
from audit.findings.gathering import Gathering
from audit.findings.rules import FindingRule, RuleSet, key_of

_CLOSING, _LASTING = 0, 1
_Due = tuple[int, int, str, str]
"""When, which of the two, the rule's name, the key."""


class LastingEvent(msgspec.Struct, array_like=True):
    """Something that lasts: the event that began it, and the finding that told of it."""

    event: AuditEvent
    told: str = ""
    """The key of the open finding; empty: it did not last long enough yet."""


class _Carried(msgspec.Struct):
    """What the watcher remembers, by the names of rules. Keys are text."""

    seen: SeenBefore = msgspec.field(default_factory=SeenBefore)
    gatherings: dict[str, dict[str, Gathering]] = {}
    """By key."""
    recent: dict[str, dict[str, list[AuditEvent]]] = {}
    """By key: the events of a rule with `count` that don't make a finding yet."""
    waiting: dict[str, dict[str, LastingEvent]] = {}
    """By subject: what may last too long."""


class Watcher:
    """Applies rules to events."""

    def __init__(self, rules: RuleSet, carried: bytes | None = None) -> None:
        """`carried`: what an earlier watcher carried; None begins with an empty memory.

        A rule that is new since then begins to look now; what a rule that is gone remembered is
        dropped.
        """
        self._rules = rules
        self._by_name = {rule.name: (rank, rule) for rank, rule in enumerate(rules.rules)}
        self._state = _Carried() if carried is None else _decode(carried)
        self._given: list[Finding] = []
        self._due: list[_Due] = []
        self._recall()

    def begin(self, facts: Iterable[AuditEvent]) -> None:
        """Learn where a cut log begins, from `EventMaker.begin`, before the first step."""
        self._state.seen.begin(facts)

    def step(self, events: Iterable[AuditEvent], horizon_ms: int = 0) -> list[Finding]:
        """Take in events in the log's order; return the findings that opened or closed.

        `horizon_ms`: the time up to which the log was read.
        """
        self._given = []
        for event in events:
            self._pass_time(event.time_ms)
            self._take(event)
        self._pass_time(horizon_ms)
        given, self._given = self._given, []
        return given

    def still_open(self) -> list[Finding]:
        """Return the findings that still take in events, as they are now."""
        return [
            gathering.finding(*self._ruled(name), still_open=True)
            for name, gatherings in sorted(self._state.gatherings.items())
            for _, gathering in sorted(gatherings.items())
        ]

    def carried(self) -> bytes:
        """Return what the next watcher needs; equal for equal histories and rules."""
        return _encode(self._state)

    def _recall(self) -> None:
        state = self._state
        for memory in (state.gatherings, state.recent, state.waiting):
            for name in [name for name in memory if name not in self._by_name]:
                del memory[name]
        for name, gatherings in state.gatherings.items():
            for key, gathering in gatherings.items():
                self._plan_closing(name, key, gathering)
        for name, waiting in state.waiting.items():
            rule = self._by_name[name][1]
            for key, one in waiting.items():
                if not one.told:
                    self._plan_telling(rule, key, one.event)

    # What is due.

    def _pass_time(self, now_ms: int) -> None:
        while self._due and self._due[0][0] <= now_ms:
            due_ms, what, name, key = heapq.heappop(self._due)
            if what == _CLOSING:
                self._close(name, key)
            else:
                self._tell(due_ms, name, key)

    def _close(self, name: str, key: str) -> None:
        rank, rule = self._by_name[name]
        gathering = self._state.gatherings[name].pop(key)
        self._given.append(gathering.finding(rule, rank, still_open=False))
        if not self._state.gatherings[name]:
            del self._state.gatherings[name]

    def _tell(self, due_ms: int, name: str, subject: str) -> None:
        """Make a finding of what has lasted too long, unless it has ended or began anew."""
        one = self._state.waiting.get(name, {}).get(subject)
        rule = self._by_name[name][1]
        if one is None or one.told or one.event.time_ms + rule.lasts_ms != due_ms:
            return
        one.told = self._gather(rule, one.event, due_ms, rule.lasts_ms)

    # An event.

    def _take(self, event: AuditEvent) -> None:
        for number in self._rules.ending.get(event.kind, ()):
            self._end(self._rules.rules[number], event)
        traits = self._state.seen.meet(event)
        if event.kind == "activity" and FIRST not in traits:
            return
        for _, rule in self._rules.about(event.kind):
            if not rule.matches(event, traits):
                continue
            if rule.lasts_ms:
                self._begin(rule, event)
            elif rule.count > 1:
                self._count(rule, event)
            else:
                self._gather(rule, event, event.time_ms, 0)

    def _begin(self, rule: FindingRule, event: AuditEvent) -> None:
        waiting = self._state.waiting.setdefault(rule.name, {})
        if event.subject not in waiting:
            waiting[event.subject] = LastingEvent(event)
            self._plan_telling(rule, event.subject, event)

    def _end(self, rule: FindingRule, event: AuditEvent) -> None:
        waiting = self._state.waiting.get(rule.name, {})
        one = waiting.pop(event.subject, None)
        if one is None:
            return
        if not waiting:
            del self._state.waiting[rule.name]
        gathering = self._state.gatherings.get(rule.name, {}).get(one.told)
        if one.told and gathering is not None and one.event.offset in gathering.offsets:
            lasted_ms = event.time_ms - one.event.time_ms
            gathering.longest_ms = max(gathering.longest_ms, lasted_ms)

    def _count(self, rule: FindingRule, event: AuditEvent) -> None:
        """Take in an event of a rule that wants several."""
        key = _text(key_of(rule, event))
        if key in self._state.gatherings.get(rule.name, {}):
            self._gather(rule, event, event.time_ms, 0)
            return
        by_key = self._state.recent.setdefault(rule.name, {})
        since_ms = event.time_ms - rule.within_ms
        recent = [one for one in by_key.pop(key, ()) if one.time_ms > since_ms]
        recent.append(event)
        if len(recent) < rule.count:
            by_key[key] = recent
            return
        if not by_key:
            del self._state.recent[rule.name]
        self._open(rule, key, recent, event.time_ms, 0)

    # Findings.

    def _gather(self, rule: FindingRule, event: AuditEvent, now_ms: int, lasted_ms: int) -> str:
        """Put an event into the open finding of its key, or open one; return the key."""
        key = _text(key_of(rule, event))
        gathering = self._state.gatherings.get(rule.name, {}).get(key)
        if gathering is None:
            self._open(rule, key, [event], now_ms, lasted_ms)
        else:
            gathering.add(event, now_ms, lasted_ms)
        return key

    def _open(
        self,
        rule: FindingRule,
        key: str,
        events: list[AuditEvent],
        now_ms: int,
        lasted_ms: int,
    ) -> None:
        found_id = _id(rule, key, events[0].offset)
        gathering = Gathering(found_id, events[0], now_ms, now_ms)
        for event in events:
            gathering.add(event, event.time_ms, lasted_ms)
        gathering.until_ms = now_ms
        self._state.gatherings.setdefault(rule.name, {})[key] = gathering
        self._plan_closing(rule.name, key, gathering)
        self._given.append(gathering.finding(*self._ruled(rule.name), still_open=True))

    def _ruled(self, name: str) -> tuple[FindingRule, int]:
        rank, rule = self._by_name[name]
        return rule, rank

    def _plan_closing(self, name: str, key: str, gathering: Gathering) -> None:
        rule = self._by_name[name][1]
        heapq.heappush(self._due, (gathering.due_ms + rule.gather_ms, _CLOSING, name, key))

    def _plan_telling(self, rule: FindingRule, subject: str, event: AuditEvent) -> None:
        due_ms = event.time_ms + rule.lasts_ms
        heapq.heappush(self._due, (due_ms, _LASTING, rule.name, subject))


def _id(rule: FindingRule, key: str, offset: int) -> str:
    """Return an id. It has digits of the key: two findings may begin with one record."""
    digits = f"-{sha256(key.encode()).hexdigest()[:6]}" if rule.per else ""
    return f"{rule.name}@{offset}{digits}"


def _text(key: tuple[str, ...]) -> str:
    """Return a key as one text. It is JSON, so that no two keys have the same."""
    return msgspec.json.encode(key).decode()


_encode = msgspec.msgpack.Encoder(order="deterministic").encode
_decode = msgspec.msgpack.Decoder(_Carried).decode
