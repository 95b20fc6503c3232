"""Delegation tokens by id (KIP-48, 900).

Rule: `order` and `expiries` are derived from `tokens`, and are in no snapshot. So the tokens that
have expired are found without looking at the others.
"""

from collections.abc import Generator
from typing import Final

import msgspec

from metadata.buckets import BucketMap, mix_text
from metadata.image.overlay import Overlay
from metadata.image.replay_error import ReplayError
from metadata.image.sorted_keys import SortedKeys
from metadata.image.table import ImageTable, itself, replays
from metadata.records import (
    DelegationTokenRecord,
    RemoveDelegationTokenRecord,
)

Expiry = tuple[int, str]
"""(ms since 1970, token id)."""


def expiry_of(token: DelegationTokenRecord) -> Expiry:
    """Return when a token ends, and which one."""
    return min(token.expiration_timestamp, token.max_timestamp), token.token_id


class TokensImage(msgspec.Struct, frozen=True):
    """All tokens; an expired token stays until a record removes it. A token is its record."""

    tokens: BucketMap[str, DelegationTokenRecord]
    order: SortedKeys[str]
    """The ids of all tokens, in order."""
    expiries: SortedKeys[Expiry]
    """When each token expires, the earliest first."""


EMPTY_TOKENS = TokensImage(BucketMap(mix_text), SortedKeys(), SortedKeys())


class TokensDelta:
    """Replays the records of delegation tokens."""

    def __init__(self, image: TokensImage) -> None:
        self._image = image
        self.tokens = Overlay(image.tokens)
        self._expiries: dict[Expiry, bool | None] = {}

    def apply_in_steps(self) -> Generator[None, None, TokensImage]:
        return TokensImage(
            (yield from self.tokens.apply_in_steps()),
            (yield from self._image.order.changing(self.tokens.changed)),
            (yield from self._image.expiries.changing(self._expiries)),
        )

    @replays(DelegationTokenRecord)
    def set_token(self, record: DelegationTokenRecord, offset: int) -> None:
        """Create a token, renew it, or set when it expires."""
        self._forget_expiry(record.token_id)
        self.tokens.set(record.token_id, record)
        self._expiries[expiry_of(record)] = True

    @replays(RemoveDelegationTokenRecord)
    def remove_token(self, record: RemoveDelegationTokenRecord, offset: int) -> None:
        if record.token_id not in self.tokens:
            raise ReplayError(offset, f"there is no delegation token {record.token_id!r}")
        self._forget_expiry(record.token_id)
        self.tokens.remove(record.token_id)

    def _forget_expiry(self, token_id: str) -> None:
        token = self.tokens.get(token_id)
        if token is not None:
            self._expiries[expiry_of(token)] = None


TABLES: Final = (ImageTable("tokens", "tokens", "tokens", itself, "token", ("token_id",)),)
