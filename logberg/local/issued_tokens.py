"""The bearer tokens of a local cluster: one file for each principal, 0600.

Rule: a token that was issued stays, so that later starts of the cluster know it too.
"""

import hashlib
import re
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from logberg.local.cluster_file import TOKEN_FILE, LocalClusterError

ADMIN: Final = "User:admin"
_FOLDER: Final = "tokens"
_PRINCIPAL: Final = re.compile(r"(?:User|Broker):[A-Za-z0-9._-]{1,64}")


def token_file(folder: Path, principal: str) -> Path:
    """Return the file of the token that was issued for a principal."""
    if principal == ADMIN:
        return folder / TOKEN_FILE
    return folder / _FOLDER / f"{principal.replace(':', '-', 1)}.token"


def issue(folder: Path, principals: Sequence[str]) -> dict[str, str]:
    """Issue missing tokens. Returns the SHA-256 of every principal's token.

    The administrator has one, and so have those for whom one was issued before. Raises
    LocalClusterError.
    """
    files = sorted((folder / _FOLDER).glob("*.token"))
    issued = [path.stem.replace("-", ":", 1) for path in files]
    hashes = {}
    for principal in (ADMIN, *issued, *principals):
        if not _PRINCIPAL.fullmatch(principal):
            raise LocalClusterError(
                f"--token is {principal!r}; use User:NAME or Broker:NUMBER, with letters, "
                "digits and . _ -"
            )
        path = token_file(folder, principal)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        if not path.exists():
            path.touch(mode=0o600)
            path.write_text(f"qk_{secrets.token_urlsafe(32)}\n")
        hashes[principal] = hashlib.sha256(path.read_text().strip().encode()).hexdigest()
    return hashes
