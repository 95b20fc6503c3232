"""What agents open of the secrets in their images (S3 and S4 of `clients`).

Rule: an agent's image may be old, so during the faults an agent may open each value that was ever
asked for. At rest it opens what stands in the log. An opened secret is compared with what the
client made it from, and never with what the controllers computed.
"""

import hashlib
import hmac
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Any

from broker_agent.opened_secrets import Secrets
from metadata.records import ConfigResourceType, ScramMechanism
from metadata.sealing import ClusterKey

PASSWORD = "listener.name.{}.ssl.keystore.password"
PASSWORDS_OF = "1"
"""The broker whose configs hold the passwords."""
Names = Mapping[tuple[str, str], Collection[Any]]
"""By kind and name: the values that may be there."""


def salted(user: str, iterations: int) -> bytes:
    """Return what stands for a user's salted password; PBKDF2 itself would take too long."""
    return hashlib.sha256(f"{user}/{iterations}".encode()).digest()


def stored_key(user: str, iterations: int) -> bytes:
    """Return the key that a broker compares at a login (RFC 5802)."""
    made = hmac.digest(salted(user, iterations), b"Client Key", "sha256")
    return hashlib.sha256(made).digest()


class AgentSecrets:
    """Asks agents for secrets and compares the answers."""

    def __init__(self, key: Callable[[], ClusterKey], fail: Callable[[str], None]) -> None:
        """`key`: opens all that is not erased."""
        self._key = key
        self._fail = fail
        self.facts: Counter[str] = Counter()
        self.hmacs: dict[str, bytes] = {}
        """By token: the HMAC that came with the answer to its creation."""

    def password(self, image: Any, name: str) -> str | None:
        """Return a password as whoever has this image opens it; None: there is none."""
        secrets = self._of(image)
        return secrets.config(ConfigResourceType.BROKER, PASSWORDS_OF, PASSWORD.format(name))

    def judge(self, image: Any, names: Names) -> None:
        """Open the passwords and credentials of these names, and every token, at an agent."""
        secrets = self._of(image)
        for (kind, name), possible in names.items():
            if kind == "password":
                found: Any = self.password(image, name)
            elif kind == "scram":
                found = self._credential(secrets, name)
            else:
                continue
            if found not in possible:
                self._fail(f"S3: an agent opens {kind} {name} to {found}, not {possible}")
            self.facts[f"{kind}s opened by agents"] += 1
        for token_id, expected in self.hmacs.items():
            opened = secrets.token(token_id)
            if opened is None:
                continue
            if opened.hmac != expected:
                self._fail(f"S4: an agent opens token {token_id} to another HMAC")
            self.facts["tokens opened by agents"] += 1

    def _credential(self, secrets: Secrets, name: str) -> int | None:
        opened = secrets.scram(name, ScramMechanism.SCRAM_SHA_256)
        if opened is None:
            return None
        if opened.stored_key != stored_key(name, opened.iterations):
            self._fail(f"S3: an agent opens the credential of {name} to another key")
        return opened.iterations

    def _of(self, image: Any) -> Secrets:
        return Secrets(lambda: image, self._key())
