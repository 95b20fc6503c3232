"""The errors of coordination. Each says whether to try again, and whether the change was made.

Rule: `retryable` means that the same call may succeed later. `outcome` is about the store: a change
is `applied`, `not_applied` or `unknown`. Only OutcomeUnknown, and a time-out of a change, are
`unknown`; a caller reads the state then, or repeats the call with the same request id.

An error is made from its message; what else it carries comes by keyword. So errors survive pickling
between processes.
"""

from typing import ClassVar, Literal

from coordination.types import Member, Record, Revision, Token

Outcome = Literal["applied", "not_applied", "unknown"]


class CoordinationError(Exception):
    """What every error of coordination is."""

    retryable: ClassVar[bool] = False
    outcome: Outcome = "not_applied"

    def __init__(self, message: str = "") -> None:
        super().__init__(message)


class ConfigError(CoordinationError):
    """A URL, an option or a setting is wrong; the message names it."""


class AuthFailed(CoordinationError):
    """The store refuses the credentials. Nothing tries again."""


class Unavailable(CoordinationError):
    """No server of the store answered in time, or none may decide. Nothing was changed."""

    retryable = True


class DeadlineExceeded(CoordinationError):
    """The caller's own time is over: a lock or an election wasn't won within its time-out."""

    retryable = True


class OutcomeUnknown(CoordinationError):
    """The request was sent and its reply is lost; the change is made or it isn't."""

    retryable = True
    outcome: Outcome = "unknown"


class SessionLost(CoordinationError):
    """The session is over, or the client can't know that it lives: its grants are gone."""


class SessionClosed(SessionLost):
    """The client ended its session itself and then used it."""


class StepRefused(CoordinationError):
    """A condition of a commit doesn't hold, so the whole commit was refused."""

    def __init__(self, message: str = "", *, index: int | None = None) -> None:
        super().__init__(message)
        self.index = index
        """Which step it was, from 0, in the order of the transaction; None: there was only one.
        From a backend: in the order checks, fences, operations."""


class KeyExists(StepRefused):
    """The key is there already."""

    def __init__(
        self, message: str = "", *, record: Record | None = None, index: int | None = None
    ) -> None:
        super().__init__(message, index=index)
        self.record = record
        """What the key holds; None where the store doesn't say."""


class KeyMissing(StepRefused):
    """The key isn't there."""


class RevisionMismatch(StepRefused):
    """The key was changed since."""

    def __init__(
        self, message: str = "", *, current: Revision | None = None, index: int | None = None
    ) -> None:
        super().__init__(message, index=index)
        self.current = current
        """The key's mod revision; None: the key isn't there."""


class Fenced(StepRefused):
    """The token isn't that of the present grant."""

    def __init__(
        self, message: str = "", *, current_token: Token | None = None, index: int | None = None
    ) -> None:
        super().__init__(message, index=index)
        self.current_token = current_token
        """The present grant's token; None: nobody has a grant."""


class MemberExists(CoordinationError):
    """Another session, which lives, is the member with this id."""

    def __init__(self, message: str = "", *, member: Member | None = None) -> None:
        super().__init__(message)
        self.member = member


class CandidateExists(CoordinationError):
    """Another session, which lives, is the candidate with this id."""


class NotHeld(CoordinationError):
    """The lock, leadership or membership isn't, or is no longer, the caller's."""


class ValueTooLarge(CoordinationError):
    """The value is larger than the store takes. Nothing was sent."""

    def __init__(self, message: str = "", *, limit: int = 0) -> None:
        super().__init__(message)
        self.limit = limit
        """In bytes."""


class InvalidKey(CoordinationError):
    """The key or name is empty, too long, or not text that the store can hold."""


class TxnTooLarge(CoordinationError):
    """The transaction has more steps or bytes than the store takes."""


class Compacted(CoordinationError):
    """The store has forgotten the changes from which a strict watch was to go on."""

    def __init__(self, message: str = "", *, oldest: Revision | None = None) -> None:
        super().__init__(message)
        self.oldest = oldest
        """The oldest revision from which a watch can go on, where the store says it."""


class NotSupported(CoordinationError):
    """The backend doesn't offer this."""

    def __init__(self, message: str = "", *, capability: str = "") -> None:
        super().__init__(message)
        self.capability = capability
        """The field of `Capabilities` that says so."""
