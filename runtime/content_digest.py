"""What a body is, said beside it: the Content-Digest of RFC 9530, with CRC-32C.

Rule: our servers and clients say it of every body that they send, and believe no body of which
something else is said. Without TLS nothing but TCP's 16 bits stands between a bad cable, or a
router's bad memory, and the log. It is no help against people: that is TLS's business.
"""

from base64 import b64encode
from typing import Final

import google_crc32c

CONTENT_DIGEST: Final = "content-digest"
_OURS: Final = "crc32c"


def content_digest(body: bytes) -> str:
    """Return the header's value for a body."""
    checksum = int(google_crc32c.value(body)).to_bytes(4, "big")
    return f"{_OURS}=:{b64encode(checksum).decode()}:"


def is_content(body: bytes, said: str | None) -> bool:
    """Tell whether a body is what the header says; yes where it says nothing that we read."""
    for member in (said or "").split(","):
        if member.strip().startswith(f"{_OURS}="):
            return member.strip() == content_digest(body)
    return True
