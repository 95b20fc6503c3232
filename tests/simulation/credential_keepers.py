"""Keepers of credentials in the log: access tokens and revocations of certificates.

- S6: once the end of a token was acknowledged, no node that has applied it takes the token, neither
  a controller nor an agent. Until then every node that has applied its beginning takes it, and
  nobody ever takes a token that was not made. The same for revoked certificates.

A change without an answer leaves the token unjudged.
"""

from base64 import b64encode
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Any

from metadata.credentials import certificate_refusal, id_of, judge_access_token
from metadata.features import CREDENTIALS_FROM, LOGBERG_VERSION
from metadata.records import AccessTokenRecord
from tests.simulation.clients import Administrator

NEVER_MADE = b"\x05" * 32


class KeptToken:
    """One token, and since which offsets it is there and not any more."""

    def __init__(self, digest: bytes) -> None:
        self.digest = digest
        self.since: int | None = None
        self.until: int | None = None
        self.unknown = False
        """An answer never came."""


class CredentialKeeper(Administrator):
    """One of them, with tokens of its own."""

    def __init__(self, crowd: Any, number: int) -> None:
        super().__init__(crowd, number)
        self._kept: list[KeptToken] = []
        self._revoked: dict[str, int] = {}
        """Serial numbers, and since when they are refused."""
        self._serials = 0

    def _act(self) -> None:
        if not self._crowd.cluster.busy:
            self.go_on()
            return
        if self._crowd.level(LOGBERG_VERSION) < CREDENTIALS_FROM:
            self._raise(LOGBERG_VERSION, CREDENTIALS_FROM)
            return
        living = [each for each in self._kept if each.since and not each.until and not each.unknown]
        acts: list[Callable[[], None]] = [self._make, self._revoke_certificate, self._judge]
        if living:
            token = self._dice.choice(living)
            acts += [lambda: self._end(token), lambda: self._rotate(token), self._judge]
        self._dice.choice(acts)()

    def _drawn(self) -> KeptToken:
        token = KeptToken(sha256(self._dice.randbytes(32)).digest())
        self._kept.append(token)
        return token

    def _make(self) -> None:
        token = self._drawn()
        body = {"principal": self.principal, "sha256": b64encode(token.digest).decode()}
        self._change("/v1/access-tokens", body, (token,), lambda offset: self._began(token, offset))

    def _end(self, token: KeptToken) -> None:
        path = f"/v1/access-tokens/{id_of(token.digest)}/revoke"
        self._change(path, {}, (token,), lambda offset: self._ended(token, offset))

    def _rotate(self, old: KeptToken) -> None:
        new = self._drawn()
        body = {"sha256": b64encode(new.digest).decode()}

        def done(offset: int) -> None:
            self._began(new, offset)
            self._ended(old, offset)

        path = f"/v1/access-tokens/{id_of(old.digest)}/rotate"
        self._change(path, body, (old, new), done)

    def _revoke_certificate(self) -> None:
        self._serials += 1
        serial = f"{self._number:02X}{self._serials:06X}"
        serial = serial.lstrip("0").zfill(2)
        serial = serial.zfill(len(serial) + len(serial) % 2)

        def done(offset: int) -> None:
            self._revoked[serial] = offset
            self._crowd.facts["certificates revoked"] += 1

        self._change("/v1/revocations", {"serial": serial}, (), done)

    def _change(
        self, path: str, body: Any, tokens: tuple[KeptToken, ...], done: Callable[[int], None]
    ) -> None:
        def unknown() -> None:
            for token in tokens:
                token.unknown = True

        def took(reply: dict[str, Any]) -> None:
            if "code" in reply:
                unknown()
            else:
                done(reply["offset"])

        # A rotation may meet a token that an earlier try of its own has ended.
        self._send("POST", path, body, took, unknown, ("UNSUPPORTED_VERSION",))

    def _began(self, token: KeptToken, offset: int) -> None:
        token.since = offset
        self._crowd.facts["access tokens made"] += 1

    def _ended(self, token: KeptToken, offset: int) -> None:
        token.until = offset
        self._crowd.facts["access tokens ended"] += 1

    def _judge(self) -> None:
        """S6, on all nodes at this moment."""
        for image in self._images():
            self._judge_image(image)
        self.go_on()

    def _images(self) -> Iterator[Any]:
        cluster = self._crowd.cluster
        yield from (controller.image for _, controller in sorted(cluster.running().items()))
        for _, each in sorted(cluster.brokers.items()):
            if each.agent is not None:
                yield each.agent.image

    def _judge_image(self, image: Any) -> None:
        now = image.timestamp_ms
        if judge_access_token(image, NEVER_MADE, now) is not None:
            self._crowd.fail("S6: a token is known that nobody made")
        for token in self._kept:
            judged = judge_access_token(image, token.digest, now)
            taken = isinstance(judged, AccessTokenRecord)
            if token.until is not None and image.offset >= token.until and taken:
                self._crowd.fail(f"S6: {id_of(token.digest)} ended at {token.until}, and is taken")
            must = token.since is not None and image.offset >= token.since
            if must and not taken and token.until is None and not token.unknown:
                self._crowd.fail(f"S6: {id_of(token.digest)} is refused: {judged}")
            self._crowd.facts["tokens judged"] += 1
        for serial, offset in self._revoked.items():
            refused = certificate_refusal(image, "User:a", serial, lambda: 0)
            if image.offset >= offset and not refused:
                self._crowd.fail(f"S6: the certificate {serial} is revoked, and is taken")

    def judge_log(self, ledger: Any) -> None:
        """Judge the nodes at rest, too."""
        for image in self._images():
            self._judge_image(image)
