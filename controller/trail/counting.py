"""Counts attempts by kind, in bounded memory.

Rule: every attempt is counted exactly once, whatever comes. If one source has too many kinds, or
all together have, further kinds are not told apart: fields are replaced by `*`, and the count goes
on. So one source that draws names can't hide what others try.
"""

from collections import Counter
from hashlib import sha256
from typing import Final, NamedTuple

from metadata.plain_text import without_control_characters
from metadata.records import SEVERAL, AttemptDetail, AttemptOutcome
from metadata.sealed_addresses import network_of_address
from runtime.sockets.attempts import Attempt

KINDS_MAX: Final = 400
"""Kinds that are told apart at a time."""
KINDS_OF_A_SOURCE: Final = 24
"""Kinds of one principal at one address that are told apart at a time."""
NAME_CHARS: Final = 249
"""Of a principal, a resource, a reason. Kafka's names of topics have at most so many."""
SAMPLE_CHARS: Final = 500
"""Of a request's path, and of an answer."""
UNIX_SOCKET: Final = "unix socket"


class AttemptKind(NamedTuple):
    """What attempts have in common that are counted together."""

    outcome: AttemptOutcome
    detail: AttemptDetail
    principal: str
    through: str
    auth_method: str
    operation: str
    resource: str
    address: str
    code: str
    reason: str


class Counted:
    """How many attempts of a kind there were, when, and the first of them."""

    __slots__ = ("answer", "body_sha256", "client_id", "count", "first_ms", "last_ms", "request")

    def __init__(self, now_ms: int) -> None:
        self.first_ms = self.last_ms = now_ms
        self.count = 0
        self.request = self.client_id = self.body_sha256 = self.answer = ""

    def sample(self, attempt: Attempt, detail: AttemptDetail) -> None:
        """Keep what the detail asks for."""
        if detail >= AttemptDetail.REQUEST:
            self.request = plain(attempt.request, SAMPLE_CHARS)
            self.client_id = plain(attempt.client_id, NAME_CHARS)
            self.body_sha256 = sha256(attempt.body).hexdigest() if attempt.body else ""
        if detail >= AttemptDetail.RESPONSE:
            self.answer = plain(attempt.answer, SAMPLE_CHARS)


class AttemptCounts:
    """The attempts that are not in a report yet."""

    def __init__(
        self, kinds_max: int = KINDS_MAX, kinds_of_a_source: int = KINDS_OF_A_SOURCE
    ) -> None:
        self._kinds_max = kinds_max
        self._kinds_of_a_source = kinds_of_a_source
        self._counted: dict[AttemptKind, Counted] = {}
        self._of_source: Counter[tuple[str, str]] = Counter()
        self.not_told_apart = 0
        """For metrics: attempts that were counted under `*`."""

    def __len__(self) -> int:
        return len(self._counted)

    def note(
        self, outcome: AttemptOutcome, detail: AttemptDetail, attempt: Attempt, now_ms: int
    ) -> None:
        """Count an attempt."""
        kind = AttemptKind(
            outcome,
            detail,
            plain(attempt.principal, NAME_CHARS),
            plain(attempt.through, NAME_CHARS),
            plain(attempt.auth_method, NAME_CHARS),
            plain(attempt.operation, NAME_CHARS),
            plain(attempt.resource, NAME_CHARS),
            where_class(attempt.address),
            plain(attempt.code, NAME_CHARS),
            plain(attempt.reason, NAME_CHARS),
        )
        counted = self._counted.get(kind)
        if counted is None:
            counted = self._first_of(kind, attempt, now_ms)
        counted.count += 1
        counted.last_ms = max(counted.last_ms, now_ms)

    def _first_of(self, kind: AttemptKind, attempt: Attempt, now_ms: int) -> Counted:
        """Return where to count an attempt of a new kind."""
        source = (kind.principal, kind.address)
        is_new = True
        if self._of_source[source] >= self._kinds_of_a_source:
            kind = _of_source_only(kind)
            is_new = kind not in self._counted
        # Kinds that stand for several are few, so they may be above the limit.
        if is_new and len(self._counted) >= self._kinds_max:
            kind = _of_anybody(kind)
        if kind.operation == SEVERAL:
            self.not_told_apart += 1
        counted = self._counted.get(kind)
        if counted is None:
            counted = self._counted[kind] = Counted(now_ms)
            counted.sample(attempt, kind.detail)
            self._of_source[kind.principal, kind.address] += 1
        return counted

    def take_first(self) -> tuple[AttemptKind, Counted]:
        """Take out the kind that has waited longest."""
        kind = next(iter(self._counted))
        source = (kind.principal, kind.address)
        self._of_source[source] -= 1
        if not self._of_source[source]:
            del self._of_source[source]
        return kind, self._counted.pop(kind)

    def first(self) -> tuple[AttemptKind, Counted]:
        """Return the kind that has waited longest."""
        return next(iter(self._counted.items()))


def _of_source_only(kind: AttemptKind) -> AttemptKind:
    return AttemptKind(
        kind.outcome,
        AttemptDetail.METADATA,
        kind.principal,
        "",
        "",
        SEVERAL,
        "",
        kind.address,
        kind.code,
        "",
    )


def _of_anybody(kind: AttemptKind) -> AttemptKind:
    return _of_source_only(kind)._replace(principal=SEVERAL, address=SEVERAL)


def where_class(address: str) -> str:
    """Return the network that stands for an address.

    Whoever has IPv6 usually has all addresses of a /64 network.
    """
    if not address:
        return UNIX_SOCKET
    return network_of_address(address) or plain(address, NAME_CHARS)


def plain(text: str, chars: int) -> str:
    """Return text without control characters, and not longer than it may be."""
    return (
        text if text.isascii() and text.isprintable() and len(text) <= chars else _cut(text, chars)
    )


def _cut(text: str, chars: int) -> str:
    shown = without_control_characters(text[: chars + 1])
    return shown if len(shown) <= chars else shown[: chars - 1] + "…"
