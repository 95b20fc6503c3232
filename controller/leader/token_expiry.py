"""Removes delegation tokens that have expired, while this controller leads (KIP-48).

Rule: the image knows the tokens in the order of their expiry. So one timer waits for the earliest,
and what it removes is all that has expired, at most `SWEPT_MAX` in a batch. A token that is past
its expiry counts as expired everywhere, also before its record is removed.
"""

from collections.abc import Callable
from typing import Final

from controller.leader.decisions import Decision, Outcome, Written
from controller.leader.proposer import Proposer
from controller.managers.clients.tokens import TokenManager
from ledger.batch import Provenance
from metadata.image import MetadataImage
from metadata.image.tokens import TokensImage
from runtime.clock import Clock, Timer

PAUSE_S: Final = 1.0
"""The least time between two sweeps: tokens that end close to each other go together."""
LOOK_S: Final = 600.0
"""The most time between two looks: the wall clock may be set."""


class TokenExpiry:
    """Waits for the next token to expire, and submits its removal."""

    def __init__(
        self,
        clock: Clock,
        tokens: TokenManager,
        proposer: Proposer,
        image: Callable[[], MetadataImage],
        provenance: Callable[[str], Provenance],
    ) -> None:
        """`image` returns the committed image; `provenance` makes that of an own operation."""
        self._clock = clock
        self._tokens = tokens
        self._proposer = proposer
        self._image = image
        self._provenance = provenance
        self._leads = False
        self._timer: Timer | None = None
        self._seen: TokensImage | None = None
        self._swept_at = clock.monotonic()
        """Monotonic seconds of the last sweep."""

    def begin(self) -> None:
        """This controller is active now."""
        self._leads = True
        self._seen = None
        self.look()

    def end(self) -> None:
        """This controller leads no more."""
        self._leads = False
        self._stop()

    def look(self) -> None:
        """The committed image may have changed: wait for the token that expires first now."""
        tokens = self._image().tokens
        if not self._leads or tokens is self._seen:
            return
        self._seen = tokens
        self._stop()
        first = next(iter(tokens.expiries), None)
        if first is not None:
            # The pause counts from the last sweep. From now on, it would begin again with each
            # change of a token, and where tokens change all the time none would ever be removed.
            paused_s = self._swept_at + PAUSE_S - self._clock.monotonic()
            due_s = (first[0] - self._clock.wall_ms()) / 1000
            self._timer = self._clock.call_later(
                min(max(due_s, paused_s, 0.0), LOOK_S), self._sweep
            )

    def _sweep(self) -> None:
        self._timer = None
        self._swept_at = self._clock.monotonic()

        def done(outcome: Outcome) -> None:
            if not self._leads:
                return
            if not isinstance(outcome, Written) or not outcome.wrote:
                # Nothing was due yet, or it was refused: look again, at the soonest in `PAUSE_S`.
                self._seen = None
                self.look()

        self._proposer.submit(
            Decision(self._tokens.sweep, self._provenance("ExpireTokens"), done, first=True)
        )

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
