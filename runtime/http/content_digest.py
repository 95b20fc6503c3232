"""The checksum of a body in its header: Content-Digest of RFC 9530, with CRC-32C.

Rule: our servers and clients send the header with every body, and refuse a body that doesn't match
its header. Without TLS, only TCP's 16-bit checksum protects the log against a bad cable or a
router's bad memory. The header doesn't protect against attackers; TLS does.
"""

from binascii import b2a_base64
from typing import Final

import google_crc32c

CONTENT_DIGEST: Final = "content-digest"
_OURS: Final = "crc32c"


def content_digest(body: bytes) -> str:
    """Return the header's value for a body."""
    checksum = int(google_crc32c.value(body)).to_bytes(4, "big")
    return f"{_OURS}=:{b2a_base64(checksum, newline=False).decode()}:"


def is_content(body: bytes, said: str | None) -> bool:
    """Tell whether a body matches its header.

    A missing header, or one without a CRC-32C, matches every body.
    """
    for member in (said or "").split(","):
        if member.strip().startswith(f"{_OURS}="):
            return member.strip() == content_digest(body)
    return True
