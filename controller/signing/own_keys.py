"""This controller's own keys: the one that signs, and the next one while it rotates (ADR 0087).

Rule: the log decides which key counts. A new key is durable in the folder before anybody hears of
it, so that no key counts that a crash has lost. Once the log names it, it becomes `head.key`, and
the one before is gone.

    head.key        the private key, as 64 hexadecimal digits
    head.key.next   the next one, between the request to rotate and the record that says it is done
    head.pub        the public key, as a line for people
"""

from collections.abc import Callable
from typing import Final

from structlog.typing import FilteringBoundLogger

from controller.signing.messages import KeyRotation
from ledger.merkle.heads import origin_of, rotation_text
from ledger.merkle.notes import SEED_BYTES, SigningKey
from metadata.records import HeadKeyCause, HeadKeyRecord
from runtime.disk.interface import Disk

FILE: Final = "head.key"
NEXT_FILE: Final = "head.key.next"
PUBLIC_FILE: Final = "head.pub"


class OwnKeys:
    """The private keys in the folder, and what the log says of them."""

    def __init__(
        self,
        disk: Disk,
        node_id: int,
        cluster_id: str,
        seed: bytes,
        draw: Callable[[], bytes] | None,
        log: FilteringBoundLogger,
    ) -> None:
        """`seed`: the private key, unless `head.key` has one. `draw`: a new one, as a secret."""
        self._disk = disk
        self._node_id = node_id
        self._cluster_id = cluster_id
        self._seed = seed
        self._draw = draw
        self._log = log
        self._next: bytes | None = None
        self._read = False
        self._durable = False
        """`head.key.next` is on disk."""
        self._key: SigningKey | None = None
        self.problem = ""
        """Why this node's signatures don't count; empty: the log names its key, or none yet."""

    def key(self, origin: str) -> SigningKey:
        """Return the key that signs, under a name."""
        self._load()
        if self._key is None or self._key.public.name != origin:
            self._key = SigningKey(origin, self._seed)
        return self._key

    def look(self, named: HeadKeyRecord | None) -> None:
        """The log may name another key for this node: draw, take over, or say what is wrong."""
        self._load()
        problem = ""
        if named is not None:
            if self._next is not None and named.public_key == _public(self._next):
                self._take_over()
            elif named.public_key != _public(self._seed):
                problem = (
                    f"this controller's key is {self._line(self._seed)}, and the log names another "
                    "for it: it signs no heads. Put its head.key back. If that is lost, `logberg "
                    f"quorum rotate-key {self._node_id} --public-key head.pub --reason …` names "
                    "this one"
                )
            elif named.cause == HeadKeyCause.ROTATING and self._next is None:
                self._begin_rotation()
        if problem and problem != self.problem:
            self._log.error("head_key_not_in_log", why=problem)
        self.problem = problem

    def rotation(self, named: HeadKeyRecord | None, origin: str) -> KeyRotation | None:
        """Return what both keys have signed, if a rotation is under way and durable here."""
        if named is None or named.cause != HeadKeyCause.ROTATING or self._next is None:
            return None
        if not self._durable or named.public_key != _public(self._seed):
            return None
        new = SigningKey(origin, self._next)
        text = rotation_text(origin, self._node_id, named.public_key, new.public.public)
        old = SigningKey(origin, self._seed)
        return KeyRotation(new.public.public, old.sign(text).signature, new.sign(text).signature)

    def rotates(self, named: HeadKeyRecord | None) -> bool:
        """Return whether a rotation was asked for and is not done."""
        return (
            named is not None
            and named.cause == HeadKeyCause.ROTATING
            and self._next is not None
            and not self.problem
        )

    def _load(self) -> None:
        """Read the files of the runs before, once."""
        if self._read:
            return
        self._read = True
        try:
            self._seed = self._seed_in(FILE) or self._seed
            self._next = self._seed_in(NEXT_FILE)
        except OSError as error:
            self._log.warning("head_key_not_read", why=str(error))
        self._durable = self._next is not None

    def _seed_in(self, name: str) -> bytes | None:
        if not self._disk.exists(name):
            return None
        try:
            seed = bytes.fromhex(self._disk.read(name).decode("ascii").strip())
        except ValueError:
            seed = b""
        if len(seed) != SEED_BYTES:
            self._log.warning("head_key_not_read", why=f"{name} holds no private key")
            return None
        return seed

    def _begin_rotation(self) -> None:
        if self._draw is None:
            return
        self._next, self._durable = self._draw(), False
        data = f"{self._next.hex()}\n".encode()

        def written(_: None, error: OSError | None) -> None:
            self._durable = error is None
            if error is not None:
                self._next = None
                self._log.warning("head_key_not_written", why=str(error))

        self._disk.in_background(lambda: self._disk.replace(NEXT_FILE, data), written)

    def _take_over(self) -> None:
        assert self._next is not None
        self._seed, self._next, self._key = self._next, None, None
        data, line = f"{self._seed.hex()}\n".encode(), f"{self._line(self._seed)}\n".encode()

        def write() -> None:
            self._disk.replace(FILE, data)
            self._disk.replace(PUBLIC_FILE, line)
            if self._disk.exists(NEXT_FILE):
                self._disk.unlink(NEXT_FILE)

        def written(_: None, error: OSError | None) -> None:
            if error is not None:
                # The next start finds `head.key.next`, and takes it over again.
                self._log.warning("head_key_not_written", why=str(error))

        self._log.info("head_key_rotated", key=self._line(self._seed))
        self._disk.in_background(write, written)

    def _line(self, seed: bytes) -> str:
        return SigningKey(origin_of(self._cluster_id), seed).public.text


def _public(seed: bytes) -> bytes:
    return SigningKey("key", seed).public.public
