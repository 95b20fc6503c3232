"""Limits how many partitions one client may create, delete or touch (KIP-599).

The limit is the client quota `controller_mutation_rate` that applies to the user and the client id
of a request (`metadata.quota_rules`). Rule: a client has a token bucket of its own for each quota
that applies to it, also where the quota is a default. Clients without a quota have no limit.

A bucket saves up `BURST_S` seconds of its rate, as Kafka's does with its 11 samples of a second.
The buckets are the leader's soft state: they are in no record, and a new leader begins with full
ones.
"""

from collections import OrderedDict
from typing import Final, NamedTuple

from controller.leader.token_bucket import TokenBucket
from ledger.batch import Provenance
from metadata.errors import ErrorCode, LogbergError
from metadata.image.client_quotas import ClientQuotasImage
from metadata.quota_rules import CLIENT_ID, CONTROLLER_MUTATION_RATE, USER, resolve
from runtime.clock import Clock

BURST_S: Final = 11.0
BUCKETS_MAX: Final = 10_000
"""The most clients that are remembered; the one that was not charged for longest is forgotten."""
_USER_PREFIX: Final = "User:"

_Client = tuple[tuple[str, str], ...]


class Payer(NamedTuple):
    """Who asks for a change; None where it is not known."""

    user: str | None
    client_id: str | None


def payer_of(provenance: Provenance) -> Payer:
    """Return who pays for a change: the user for whom a broker asks, else the principal."""
    principal = provenance.on_behalf_of or provenance.principal
    user = principal.removeprefix(_USER_PREFIX) if principal.startswith(_USER_PREFIX) else None
    return Payer(user, provenance.client_id or None)


class ClientMutationQuotas:
    """The buckets of the clients that have a quota."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._buckets: OrderedDict[_Client, TokenBucket] = OrderedDict()
        self._epoch = 0
        self.refused = 0
        """Changes that a quota refused, since this process started."""

    def charge(
        self, partitions: int, payer: Payer, quotas: ClientQuotasImage, epoch: int
    ) -> TokenBucket | None:
        """Accept a change of so many partitions. Raises LogbergError THROTTLED.

        Returns the bucket that paid: give it the tokens back if the change is refused later.
        """
        if epoch != self._epoch:
            self._epoch = epoch
            self._buckets.clear()
        if partitions <= 0 or not len(quotas.entities):
            return None
        applied = resolve(quotas, payer.user, payer.client_id, None).get(CONTROLLER_MUTATION_RATE)
        if applied is None or applied.value <= 0:
            # A log that another program wrote may hold a quota that we would refuse.
            return None
        names = {USER: payer.user, CLIENT_ID: payer.client_id}
        client = tuple((kind, names[kind] or "") for kind, _ in applied.entity)
        bucket = self._bucket(client, applied.value)
        wait_ms = bucket.wait_ms()
        if wait_ms:
            self.refused += 1
            who = " and ".join(f"{kind} {name!r}" for kind, name in client)
            raise LogbergError(
                ErrorCode.THROTTLED,
                f"the quota of {who} for changes of partitions is used up: it grows by "
                f"{applied.value:g} partitions a second ({CONTROLLER_MUTATION_RATE}); "
                f"retry in {wait_ms} ms",
                retry_after_ms=wait_ms,
            )
        bucket.take(partitions)
        return bucket

    def _bucket(self, client: _Client, rate: float) -> TokenBucket:
        bucket = self._buckets.get(client)
        if bucket is None or bucket.rate != rate:
            bucket = self._buckets[client] = TokenBucket(self._clock, rate, rate * BURST_S)
        self._buckets.move_to_end(client)
        while len(self._buckets) > BUCKETS_MAX:
            self._buckets.popitem(last=False)
        return bucket
