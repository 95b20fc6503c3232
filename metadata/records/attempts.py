"""The record of refused attempts: who tried what, from where, why it was refused, how often. Ours.

Rule: attempts of one kind are counted before they are written, so a flood costs few records. The
counts are exact (ADR 0090). What the settings ask for may also be accepted requests.
"""

from enum import IntEnum
from typing import ClassVar, Final

from metadata.features import ATTEMPTS_FROM, LOGBERG_VERSION
from metadata.records.declaring import Columns, KnownNames, Need
from metadata.records.record import Codes, Record
from metadata.sealed_texts import number_of_text
from metadata.types import BrokerId, Int8, Int64, Uuid

SEVERAL: Final = "*"
"""In a field of `AttemptsRecord`: there were too many kinds of attempts to tell them apart."""


class AttemptOutcome(IntEnum):
    """Codes of `AttemptsRecord.outcome`."""

    UNKNOWN = 0
    REFUSED = 1
    WOULD_BE_REFUSED = 2
    """It was answered, because rights are only logged (`authorization = "log-only"`)."""
    ACCEPTED = 3


class AttemptDetail(IntEnum):
    """Codes of `AttemptsRecord.detail`, as the levels of Kubernetes' audit policy."""

    NONE = 0
    """Not recorded."""
    METADATA = 1
    """Who, what, from where, why."""
    REQUEST = 2
    """The first request of the kind, too, without its body."""
    RESPONSE = 3
    """And what was answered."""


class AttemptsRecord(Record, frozen=True, tag=101900):
    """Counts attempts of one kind that one controller refused in one interval. Ours."""

    TYPE_ID: ClassVar[int] = 1019
    VERSION: ClassVar[int] = 0
    CODES: ClassVar[Codes] = {"outcome": AttemptOutcome, "detail": AttemptDetail}
    NEEDS: ClassVar[tuple[Need, ...]] = (Need(LOGBERG_VERSION, ATTEMPTS_FROM),)
    COLUMNS: ClassVar[Columns] = {"name": "operation"}
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("attempt", "tried", "by", "from")

    controller_id: BrokerId
    """The controller that was asked."""
    life: Uuid
    """Drawn by that controller's process. Its reports are numbered."""
    number: Int64
    """Of the report, from 1 on in each life. Records of one report stand in one batch."""
    outcome: Int8
    """An `AttemptOutcome`."""
    detail: Int8
    """An `AttemptDetail`."""
    principal: str
    """Who tried; empty: nobody who was authenticated; `*`: several."""
    through: str
    """The broker that asked for the principal, by its credentials; empty: nobody."""
    auth_method: str
    """How the principal was authenticated."""
    operation: str
    """The route or request, such as create_topics, or login, or connect; `*`: several."""
    resource: str
    """What it is about, in the audit's words, such as topic:orders; empty: nothing by name."""
    address: str
    """From where: an IPv4 address, a /64 network of IPv6, `unix socket`, or `*`: several. It may be
    sealed (ADR 0093)."""
    code: str
    """The error's code, such as CLUSTER_AUTHORIZATION_FAILED; empty if it was accepted."""
    reason: str
    """Why: the right or the credential that was missing."""
    first_ms: Int64
    """When the first of them came, by that controller's clock, in ms since 1970."""
    last_ms: Int64
    """When the last of them came."""
    count: Int64
    """How many there were."""
    total: Int64
    """All attempts that this life has counted in its records so far, up to this record."""
    request: str
    """The method and the path of the first of them; empty below the detail REQUEST."""
    client_id: str
    """What its client calls itself."""
    body_sha256: str
    """Of its body, in hexadecimal; empty: it had none."""
    answer: str
    """What it was answered; empty below the detail RESPONSE."""

    def subjects(self, names: KnownNames) -> tuple[str, ...]:
        words = (
            ("attempt", self.operation),
            ("tried", self.resource),
            ("by", self.principal or "nobody"),
            ("from", self._from_where()),
        )
        return tuple(f"{kind}:{name}" for kind, name in words if name)

    def _from_where(self) -> str:
        """Return the address. A sealed one of nobody is told by its number.

        A user's address has the number of the user, and `by` names that.
        """
        number = number_of_text(self.address)
        if number is None:
            return self.address
        return "" if self.principal.startswith("User:") else f"sealed-{number.hex()}"
