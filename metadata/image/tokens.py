"""Delegation tokens by id (KIP-48, 900)."""

from collections.abc import Generator
from typing import Final

import msgspec

from metadata.buckets import BucketMap, mix_text
from metadata.image.overlay import Overlay
from metadata.image.replay_error import ReplayError
from metadata.image.table import ImageTable, itself, replays
from metadata.records import (
    DelegationTokenRecord,
    RemoveDelegationTokenRecord,
)


class TokensImage(msgspec.Struct, frozen=True):
    """All tokens; an expired token stays until a record removes it. A token is its record."""

    tokens: BucketMap[str, DelegationTokenRecord]


EMPTY_TOKENS = TokensImage(BucketMap(mix_text))


class TokensDelta:
    """Replays the records of delegation tokens."""

    def __init__(self, image: TokensImage) -> None:
        self.tokens = Overlay(image.tokens)

    def apply_in_steps(self) -> Generator[None, None, TokensImage]:
        return TokensImage((yield from self.tokens.apply_in_steps()))

    @replays(DelegationTokenRecord)
    def set_token(self, record: DelegationTokenRecord, offset: int) -> None:
        """Create a token, renew it, or set when it expires."""
        self.tokens.set(record.token_id, record)

    @replays(RemoveDelegationTokenRecord)
    def remove_token(self, record: RemoveDelegationTokenRecord, offset: int) -> None:
        if record.token_id not in self.tokens:
            raise ReplayError(offset, f"there is no delegation token {record.token_id!r}")
        self.tokens.remove(record.token_id)


TABLES: Final = (ImageTable("tokens", "tokens", "tokens", itself, "token", ("token_id",)),)
