"""What the other side of a connection shows to say who it is: a certificate, or a bearer token.

Rule: a certificate here was verified by TLS, and is read once for each connection. A token's hash
is computed once for each connection that shows it. No text of a token object shows the token.
"""

import ssl
from hashlib import sha256
from typing import NamedTuple


class PeerCertificate(NamedTuple):
    """What a verified certificate says."""

    uri: str
    """Whom it is for."""
    serial: str = ""
    """Its number, in upper-case hexadecimal digits as OpenSSL writes it."""
    begins: str = ""
    """From when it is valid, as OpenSSL writes it: `Nov 29 01:00:00 2026 GMT`."""

    @property
    def begins_ms(self) -> int:
        """From when it is valid, in ms since 1970; -1 for a time that can't be read."""
        try:
            return ssl.cert_time_to_seconds(self.begins) * 1000
        except ValueError:
            return -1


class ShownToken:
    """A bearer token that a caller showed."""

    __slots__ = ("_digest", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._digest: bytes | None = None

    @property
    def digest(self) -> bytes:
        """Its SHA-256."""
        if self._digest is None:
            self._digest = sha256(self.text.encode()).digest()
        return self._digest

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShownToken) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return "ShownToken(***)"
