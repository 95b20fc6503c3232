"""A finding: what somebody should look at, with its records and its cause.

Rule: a finding is given when it opens, at its first event, and again when it has taken in its last
one. Both have the same `id`, so whoever keeps findings keeps the later one. Caller and reason are
those of the first event.
"""

from typing import Any

import msgspec

from audit.findings.rules import Severity


class Finding(msgspec.Struct, frozen=True):
    """One finding."""

    id: str
    """`RULE@OFFSET`, with six digits if the rule tells findings apart. Unique in a log, and the
    same whoever reads the log with the same rules."""
    rule: str
    severity: Severity
    subject: str
    """What its first event is about; may be empty."""
    offset: int
    """Of its first record."""
    time_ms: int
    """When it was due: the time of the event that made it a finding."""
    principal: str
    on_behalf_of: str
    auth_method: str
    address: str
    acted_as: str
    operation: str
    reason: str
    sentence: str
    count: int
    """How many events it has gathered."""
    offsets: tuple[int, ...]
    """Of their records, in the log's order, each once."""
    until_ms: int
    """The time of the last one."""
    open: bool
    """It still takes in events."""
    rank: int
    """Where its rule stands among the rules, from 0."""

    def as_json(self) -> dict[str, Any]:
        """Return it as programs read it; names are camelCase, the severity is a word."""
        return {
            "id": self.id,
            "rule": self.rule,
            "severity": self.severity.word,
            "sentence": self.sentence,
            "subject": self.subject,
            "principal": self.principal,
            "onBehalfOf": self.on_behalf_of,
            "actedAs": self.acted_as,
            "authMethod": self.auth_method,
            "clientAddress": self.address,
            "operation": self.operation,
            "reason": self.reason,
            "timeMs": self.time_ms,
            "untilMs": self.until_ms,
            "count": self.count,
            "offset": self.offset,
            "offsets": list(self.offsets),
            "open": self.open,
        }


def ranked(findings: list[Finding]) -> list[Finding]:
    """Return findings with the worst first: by severity, rule, then the newest."""
    return sorted(findings, key=lambda one: (-one.severity, one.rank, -one.offset, one.id))


def newest_of_each(findings: list[Finding]) -> list[Finding]:
    """Return the last form of each finding, in the order in which they opened."""
    return list({one.id: one for one in findings}.values())
