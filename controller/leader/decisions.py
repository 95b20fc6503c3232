"""A decision that waits for its turn, and what can become of it.

A `Decision` is handed to `Proposer.submit`. The proposer calls its `on_outcome` exactly once, with
one of three: `Written`, a LogbergError (the decision was refused) or `LeadershipLost`.
"""

from collections.abc import Callable
from typing import NamedTuple

from controller.leader.idempotency import RequestKey
from controller.managers.sweep import Sweep
from controller.result import ControllerResult, Decide
from ledger.batch import Provenance
from metadata.errors import LogbergError


class Written(NamedTuple):
    """All records of the decision are committed.

    A decision without records is `Written` too, once everything that it read is committed.
    """

    result: ControllerResult
    offset: int
    """End offset of the decision's last record. Without records: of the image that it read."""
    epoch: int
    wrote: bool
    """The decision had records."""


class LeadershipLost(NamedTuple):
    """This controller stopped leading before the decision was committed."""

    maybe_executed: bool
    """Some records were proposed. The new leader may find them in its log."""


Outcome = Written | LogbergError | LeadershipLost


class Decision(NamedTuple):
    """What to decide, on whose behalf, and whom to tell."""

    decide: Decide
    provenance: Provenance
    on_outcome: Callable[[Outcome], None]
    key: RequestKey | None = None
    """If set, the answer is written to the log under this key."""
    first: bool = False
    """The controller or a broker needs this decision: it goes before the requests of users."""
    in_rounds: bool = False
    """The result may be `unfinished`. Each round reads what the one before wrote, so the decision
    is never prepared beside others."""
    sweep: Sweep | None = None
    """How far the rounds of a broker's event are, if it is one."""
    begins_epoch: bool = False
    """It writes BeginEpoch. Nothing is decided before it, and the proposer tries it again while
    the journal has no room."""
    on_proposed: Callable[[], None] | None = None
    """Called when its records were proposed, for each round again."""
    acted_as: str = ""
    """The broker for which the principal spoke, if that isn't its own (`ledger.batch.ACTED_AS`)."""
