"""Removes tokens that are over, while this controller leads (KIP-48, ADR 0089).

Rule: the image knows the tokens in the order of their expiry. So one timer waits for the earliest,
and what it removes is all that has expired, at most `SWEPT_MAX` in a batch. A token that is past
its expiry counts as expired everywhere, also before its record is removed.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from controller.leader.decisions import Decision, Outcome, Written
from controller.leader.proposer import Proposer
from controller.managers.clients.access_tokens import AccessTokenManager
from controller.managers.clients.tokens import TokenManager
from controller.result import Decide
from ledger.batch import Provenance
from metadata.image import MetadataImage
from runtime.clock import Clock, Timer

PAUSE_S: Final = 1.0
"""The least time between two sweeps: tokens that end close to each other go together."""
LOOK_S: Final = 600.0
"""The most time between two looks: the wall clock may be set."""


class SweptTokens(NamedTuple):
    """One kind of tokens, and how those that are over are removed."""

    operation: str
    sweep: Decide
    family: Callable[[MetadataImage], Any]
    """The part of an image that holds them."""
    endings: Callable[[Any], Iterable[tuple[Any, ...]]]
    """Takes that part. Yields (ms since 1970, …) in order: when each of them is over."""


def delegation_tokens(tokens: TokenManager) -> SweptTokens:
    """Delegation tokens are removed when they have expired."""
    return SweptTokens(
        "ExpireTokens", tokens.sweep, lambda image: image.tokens, lambda found: found.expiries
    )


def access_and_join_tokens(tokens: AccessTokenManager) -> SweptTokens:
    """Access tokens and join tokens stay for a while after their end."""
    return SweptTokens(
        "ForgetTokens", tokens.sweep, lambda image: image.credentials, lambda found: found.endings
    )


class TokenExpiries:
    """All kinds of tokens together."""

    def __init__(self, *kinds: "TokenExpiry") -> None:
        self._kinds = kinds

    def begin(self) -> None:
        """This controller is active now."""
        for each in self._kinds:
            each.begin()

    def end(self) -> None:
        """This controller leads no more."""
        for each in self._kinds:
            each.end()

    def look(self) -> None:
        """The committed image may have changed."""
        for each in self._kinds:
            each.look()


class TokenExpiry:
    """Waits for the next token to expire, and submits its removal."""

    def __init__(
        self,
        clock: Clock,
        swept: SweptTokens,
        proposer: Proposer,
        image: Callable[[], MetadataImage],
        provenance: Callable[[str], Provenance],
    ) -> None:
        """`image` returns the committed image; `provenance` makes that of an own operation."""
        self._clock = clock
        self._swept = swept
        self._proposer = proposer
        self._image = image
        self._provenance = provenance
        self._leads = False
        self._timer: Timer | None = None
        self._seen: object = None
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
        tokens = self._swept.family(self._image())
        if not self._leads or tokens is self._seen:
            return
        self._seen = tokens
        self._stop()
        first = next(iter(self._swept.endings(tokens)), None)
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
            Decision(self._swept.sweep, self._provenance(self._swept.operation), done, first=True)
        )

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
