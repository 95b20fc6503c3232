"""An open finding, and the events that it has gathered so far.

Rule: it holds whatever its sentence may say, in small. Of names it keeps the first hundred and
counts the others, each time that they come. Offsets are kept all.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from audit.findings.events import AuditEvent
from audit.findings.finding import Finding
from audit.findings.rules import FindingRule
from audit.findings.words import (
    kinds_in_words,
    length,
    listed,
    moment,
    subjects_counted,
    times,
    without_kind,
)
from metadata.sealed_addresses import shown_address

_KEPT: Final = 100


class Tally(msgspec.Struct, array_like=True):
    """Names, and how often each came."""

    counts: dict[str, int] = {}
    others: int = 0
    """How often others came that are not kept."""

    def add(self, name: str) -> None:
        """Count a name."""
        if name in self.counts or len(self.counts) < _KEPT:
            self.counts[name] = self.counts.get(name, 0) + 1
        else:
            self.others += 1

    @property
    def total(self) -> int:
        """How many names there are; those that are not kept count each time."""
        return len(self.counts) + self.others

    def __str__(self) -> str:
        return listed(self.counts, self.total)


class Gathering(msgspec.Struct):
    """An open finding. Its fields are its state."""

    id: str
    first: AuditEvent
    due_ms: int
    """When it became a finding."""
    until_ms: int
    count: int = 0
    amount: int = 0
    longest_ms: int = 0
    offsets: list[int] = []
    subjects: Tally = msgspec.field(default_factory=Tally)
    actors: Tally = msgspec.field(default_factory=Tally)
    addresses: Tally = msgspec.field(default_factory=Tally)
    grantees: Tally = msgspec.field(default_factory=Tally)
    details: Tally = msgspec.field(default_factory=Tally)
    kinds: Tally = msgspec.field(default_factory=Tally)

    def add(self, event: AuditEvent, now_ms: int, lasted_ms: int) -> None:
        """Take in an event."""
        caller = event.caller
        self.count += 1
        self.amount += event.amount
        self.longest_ms = max(self.longest_ms, lasted_ms, abs(event.amount))
        self.until_ms = max(self.until_ms, now_ms)
        if not self.offsets or self.offsets[-1] != event.offset:
            self.offsets.append(event.offset)
        self.subjects.add(event.subject)
        self.actors.add(caller.actor)
        self.addresses.add(shown_address(caller.address))
        self.grantees.add(event.grantee)
        self.details.add(event.what)
        self.kinds.add(event.kind)

    def finding(self, rule: FindingRule, rank: int, *, still_open: bool) -> Finding:
        """Return it as it is now."""
        first, caller = self.first, self.first.caller
        return Finding(
            id=self.id,
            rule=rule.name,
            severity=rule.severity,
            subject=first.subject,
            offset=first.offset,
            time_ms=self.due_ms,
            principal=caller.principal,
            on_behalf_of=caller.on_behalf_of,
            auth_method=caller.auth_method,
            address=caller.address,
            acted_as=caller.acted_as,
            operation=caller.operation,
            reason=caller.reason,
            sentence=rule.sentence.format_map(self._words()),
            count=self.count,
            offsets=tuple(sorted(set(self.offsets))),
            until_ms=self.until_ms,
            open=still_open,
            rank=rank,
        )

    def _words(self) -> Mapping[str, str]:
        """Return what `words.SENTENCE_FIELDS` names."""
        first, caller = self.first, self.first.caller
        return {
            "actor": caller.actor or "nobody",
            "actors": str(self.actors),
            "principal": caller.principal or "nobody",
            "address": shown_address(caller.address) or "no address",
            "addresses": str(self.addresses),
            "method": caller.auth_method,
            "operation": caller.operation,
            "reason": caller.reason,
            "subject": first.subject,
            "subjects": listed(without_kind(self.subjects.counts), self.subjects.total),
            "subject_count": subjects_counted(self.subjects.counts, self.subjects.total),
            "grantee": first.grantee or "nobody",
            "grantees": str(self.grantees),
            "what": first.what,
            "details": str(self.details),
            "kinds": kinds_in_words(self.kinds.counts),
            "count": str(self.count),
            "times": times(self.count),
            "amount": str(self.amount),
            "longest": length(self.longest_ms),
            "first": moment(first.time_ms),
            "last": moment(self.until_ms),
        }
