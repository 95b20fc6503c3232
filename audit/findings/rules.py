"""Rules: which events make a finding, and how bad it is. They are data; `rule_files` reads them.

Rule: a rule looks at one event at a time, with its traits. Counting, waiting and gathering are the
watcher's.
"""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from fnmatch import fnmatchcase
from typing import Final

import msgspec

from audit.findings.events import AuditEvent
from metadata.sealed_addresses import is_sealed, shown_address


class Severity(IntEnum):
    """How bad a finding is; the worst is the highest."""

    LOW = 1
    """Everyday work that an auditor wants counted."""
    MEDIUM = 2
    """Somebody should know why."""
    HIGH = 3
    """Look today."""
    CRITICAL = 4
    """Look now."""

    @property
    def word(self) -> str:
        """As in rules and output: `high`."""
        return self.name.lower()


class FindingRule(msgspec.Struct, frozen=True, kw_only=True):
    """One rule. Empty conditions always hold; all others must hold together."""

    name: str
    severity: Severity
    kinds: tuple[str, ...]
    """The kinds of events (`events.KINDS`); one of them."""
    traits: tuple[str, ...] = ()
    """Traits that the event must have (`events.TRAITS`); all of them."""
    without: tuple[str, ...] = ()
    """Traits that it must not have."""
    subject: tuple[str, ...] = ()
    """Globs, as everything up to `reason`; one must match."""
    actor: tuple[str, ...] = ()
    principal: tuple[str, ...] = ()
    method: tuple[str, ...] = ()
    address: tuple[str, ...] = ()
    operation: tuple[str, ...] = ()
    grantee: tuple[str, ...] = ()
    what: tuple[str, ...] = ()
    reason: tuple[str, ...] = ()
    at_least: int = 0
    """The least amount of the event, without its sign."""
    count: int = 1
    """How many events there must be `within` so long, of the same `per`."""
    within_ms: int = 0
    lasts_ms: int = 0
    """How long it must last: until an event of kind `until` with the same subject."""
    until: tuple[str, ...] = ()
    per: tuple[str, ...] = ()
    """What findings are told apart by: `actor`, `subject` …; empty: one finding for all."""
    gather_ms: int
    """For how long after its first event a finding takes in more."""
    sentence: str
    meaning: str
    advice: str

    def matches(self, event: AuditEvent, traits: frozenset[str]) -> bool:
        """Return whether an event with these traits is one that the rule looks for.

        A rule about addresses does not judge a sealed one.
        """
        if not traits.issuperset(self.traits) or not traits.isdisjoint(self.without):
            return False
        if abs(event.amount) < self.at_least:
            return False
        if self.address and is_sealed(event.caller.address):
            return False
        return all(
            any(fnmatchcase(value, glob) for glob in globs)
            for globs, value in self._conditions(event)
            if globs
        )

    def _conditions(self, event: AuditEvent) -> Sequence[tuple[tuple[str, ...], str]]:
        caller = event.caller
        return (
            (self.subject, event.subject),
            (self.actor, caller.actor),
            (self.principal, caller.principal),
            (self.method, caller.auth_method),
            (self.address, caller.address),
            (self.operation, caller.operation),
            (self.grantee, event.grantee),
            (self.what, event.what),
            (self.reason, caller.reason),
        )


PER: Final[Mapping[str, str]] = {
    "actor": "who it was done for",
    "principal": "who asked",
    "address": "from where",
    "subject": "what it is about",
    "grantee": "who gets or loses the right",
    "kind": "the event's kind",
}
"""What `per` may name."""


def key_of(rule: FindingRule, event: AuditEvent) -> tuple[str, ...]:
    """Return what tells the findings of one rule apart."""
    values = {
        "actor": event.caller.actor,
        "principal": event.caller.principal,
        "address": shown_address(event.caller.address),
        "subject": event.subject,
        "grantee": event.grantee,
        "kind": event.kind,
    }
    return tuple(values[name] for name in rule.per)


class RuleSet:
    """Rules in their order: of equal severity, the first ranks first."""

    def __init__(self, rules: Sequence[FindingRule]) -> None:
        self.rules = tuple(rules)
        self._by_kind: dict[str, list[tuple[int, FindingRule]]] = {}
        self.ending: dict[str, list[int]] = {}
        """By kind of event: the numbers of rules for which it is the end of what lasts."""
        for number, rule in enumerate(rules):
            for kind in rule.kinds:
                self._by_kind.setdefault(kind, []).append((number, rule))
            for kind in rule.until:
                self.ending.setdefault(kind, []).append(number)

    def about(self, kind: str) -> Sequence[tuple[int, FindingRule]]:
        """Return the rules that look at a kind of event, with their numbers."""
        return self._by_kind.get(kind, ())

    def number(self, name: str) -> int | None:
        """Return where a rule stands; None: there is none of that name."""
        return next((n for n, rule in enumerate(self.rules) if rule.name == name), None)
