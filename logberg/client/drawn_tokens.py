"""Draws access tokens and join tokens, and keeps them in files that only their owner may read.

Rule: a token is 256 random bits of the operating system, behind a prefix that scanners for leaked
secrets find. It is written before its hash is sent. So an answer that gets lost costs no token, and
the command can be repeated with the same file.
"""

import re
import secrets
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

from logberg.client.access import read_token
from metadata.credentials import ACCESS_PREFIX, JOIN_PREFIX, SECRET_BYTES
from runtime.disk.secret_file import SecretFileError, write_new_text

_JOIN: Final = re.compile(r"(lgbj_[A-Za-z0-9_-]{43})\.([0-9a-f]{64})")


class JoinToken(NamedTuple):
    """What an operator hands to a node that is to join."""

    secret: str
    """The bearer token."""
    authority: str
    """The fingerprint of the cluster's authority: the SHA-256 of its certificate in DER."""

    @property
    def text(self) -> str:
        """Both, as one word."""
        return f"{self.secret}.{self.authority}"

    def __repr__(self) -> str:
        return f"JoinToken(***, {self.authority!r})"

    @classmethod
    def parse(cls, text: str) -> "JoinToken":
        """Read what `text` returned. Raises ValueError, without the token in it."""
        found = _JOIN.fullmatch(text.strip())
        if found is None:
            raise ValueError(
                "this is no join token, or a part of one: it is lgbj_, 43 characters, a full stop "
                "and the 64 digits of the authority's fingerprint"
            )
        return cls(found[1], found[2])


def draw_access_token() -> str:
    """Return a new access token."""
    return f"{ACCESS_PREFIX}{secrets.token_urlsafe(SECRET_BYTES)}"


def draw_join_secret() -> str:
    """Return the bearer token of a new join token."""
    return f"{JOIN_PREFIX}{secrets.token_urlsafe(SECRET_BYTES)}"


def hash_of(token: str) -> bytes:
    """Return what the log keeps of a token."""
    return sha256(token.encode()).digest()


def kept_token(path: Path) -> tuple[str, bool]:
    """Return the token in a file, and whether it was drawn now because there was no file.

    Raises SecretFileError, AccessError.
    """
    return _kept(path, draw_access_token)


def kept_join_secret(path: Path) -> tuple[str, bool]:
    """Return the bearer token of a join token in the same way, without the fingerprint."""
    text, drawn = _kept(path, draw_join_secret)
    secret = text.partition(".")[0]
    if not secret.startswith(JOIN_PREFIX):
        raise SecretFileError(f"{path} is there already and holds no join token; name another file")
    return secret, drawn


def replace_secret(path: Path, text: str) -> None:
    """Write a file again, readable by its owner only."""
    beside = path.with_name(f"{path.name}.part")
    beside.unlink(missing_ok=True)
    write_new_text(beside, text)
    beside.rename(path)


def _kept(path: Path, draw: Callable[[], str]) -> tuple[str, bool]:
    if path.exists():
        if path.stat().st_mode & 0o077:
            raise SecretFileError(
                f"others than its user may open {path}; run: chmod 600 {path}, and draw another "
                "token if others may have read it"
            )
        return read_token(path), False
    token = draw()
    write_new_text(path, token)
    return token, True
