"""Who sends a MetadataFetch, and by what right the leader decides what it asks for.

Rule: what a broker asks for is judged again when it is decided, as changes of users are. Otherwise
a registration that waits for its turn would bring in a broker that may do nothing any more.
"""

from typing import NamedTuple

from controller.access.guard import RequestAccess
from controller.leader.identity import acted_as
from controller.leader.requested_change import if_allowed
from controller.result import Decide
from ledger.batch import Provenance
from runtime.http.requests import Caller


class FetchAsker(NamedTuple):
    """The caller of one request."""

    caller: Caller
    access: RequestAccess | None
    """Judges the request; None where nothing is judged."""

    def judged(self, decide: Decide) -> Decide:
        """Return a decision that is refused if the image that it reads does not allow it."""
        return if_allowed(decide, self.access)

    def provenance(self, operation: str) -> Provenance:
        """Return the provenance of a decision. Its principal is the authenticated caller."""
        caller = self.caller
        return Provenance(
            principal=caller.principal,
            auth_method=caller.method,
            client_address=caller.address,
            operation=operation,
        )

    def acted_as(self, broker_id: int) -> str:
        """Return the broker for which the caller spoke, if that isn't its own; else nothing."""
        return acted_as(self.caller, broker_id)
