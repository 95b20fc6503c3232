"""Salts passwords for SCRAM, so that no request holds one."""

import hashlib
from typing import Final

from metadata.messages.scram import SALT_BYTES

HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
"""The mechanisms, and their hashes."""


def salt_for(request_id: str, name: str) -> bytes:
    """Return the salt of a credential that a request sets.

    A controller refuses a request id that comes again with another salt, so it follows from the id.
    """
    return hashlib.sha256(f"{request_id} {name}".encode()).digest()[:SALT_BYTES]


def salted_password(mechanism: str, password: str, salt: bytes, iterations: int) -> bytes:
    """Return PBKDF2 of a password. It takes some milliseconds for 10,000 iterations."""
    return hashlib.pbkdf2_hmac(HASHES[mechanism], password.encode(), salt, iterations)
