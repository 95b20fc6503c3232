"""Which attempts are recorded, and in what detail, as the settings say.

Rule: the first rule that matches decides. Without a match, refused attempts are recorded with who,
what, from where and why, and accepted requests are not recorded. Accepted changes are in the log
by themselves.
"""

import re
from collections.abc import Callable, Sequence
from fnmatch import translate
from typing import Final

from controller.config import AttemptRule, RecordedDetail
from metadata.records import AttemptDetail, AttemptOutcome
from runtime.sockets.attempts import Attempt

_DETAILS: Final = {
    RecordedDetail.NONE: AttemptDetail.NONE,
    RecordedDetail.METADATA: AttemptDetail.METADATA,
    RecordedDetail.REQUEST: AttemptDetail.REQUEST,
    RecordedDetail.RESPONSE: AttemptDetail.RESPONSE,
}
Test = Callable[[Attempt], bool]


class Recording:
    """The rules of one controller."""

    def __init__(self, rules: Sequence[AttemptRule]) -> None:
        self._rules = [
            (rule.outcome, _test(rule), _DETAILS[RecordedDetail(rule.detail)]) for rule in rules
        ]
        self.of_accepted = any(
            rule.outcome != "refused" and rule.detail != RecordedDetail.NONE for rule in rules
        )
        """Whether any accepted request may be recorded."""

    def detail(self, outcome: AttemptOutcome, attempt: Attempt) -> AttemptDetail:
        """Return in what detail an attempt is recorded."""
        accepted = outcome is AttemptOutcome.ACCEPTED
        word = "accepted" if accepted else "refused"
        for of_outcome, fits, detail in self._rules:
            if of_outcome in ("", word) and fits(attempt):
                return detail
        return AttemptDetail.NONE if accepted else AttemptDetail.METADATA


def _test(rule: AttemptRule) -> Test:
    principals, operations = _globs(rule.principals), _globs(rule.operations)
    resources, addresses = _globs(rule.resources), _globs(rule.addresses)

    def fits(attempt: Attempt) -> bool:
        return (
            principals(attempt.principal)
            and operations(attempt.operation)
            and resources(attempt.resource)
            and addresses(attempt.address)
        )

    return fits


def _globs(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Return a test for any of the patterns. No pattern: everything passes."""
    if not patterns:
        return lambda _text: True
    fits = re.compile("|".join(translate(pattern) for pattern in patterns)).match
    return lambda text: fits(text) is not None
