"""The parts of large imports, kept by the active controller until the import that names them.

Rule: parts are soft state. They change nothing and are in no log, and no other controller has them:
after a change of leaders the client sends them again. An import names the digest of all its parts,
so it is written from exactly the records that its caller meant, or refused.

The memory for parts is bounded, and whoever sends no part for a while loses those that are here.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import Final

from metadata.errors import ErrorCode, LogbergError
from metadata.messages import IMPORT_WHOLE_BYTES_MAX
from runtime.clock import Clock

KEPT_S: Final = 120.0
"""So long parts are kept after the last one came, or was asked for."""
KEPT_BYTES_MAX: Final = 2 * IMPORT_WHOLE_BYTES_MAX
"""Of all imports together."""


class KeptImport:
    """The parts of one import, by number."""

    __slots__ = ("digests", "parts", "size", "touched")

    def __init__(self) -> None:
        self.parts: dict[int, bytes] = {}
        self.digests: dict[int, bytes] = {}
        self.size = 0
        self.touched = 0.0


class ImportParts:
    """All parts on the active controller."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._imports: dict[tuple[str, str], KeptImport] = {}
        self._size = 0
        self._looks = False

    def keep(self, principal: str, digest: str, number: int, records: bytes) -> tuple[int, ...]:
        """Keep a part, and return the numbers of those that are here.

        Raises LogbergError BODY_TOO_LARGE, THROTTLED.
        """
        kept = self._imports.get((principal, digest)) or KeptImport()
        more = len(records) - len(kept.parts.get(number, b""))
        if kept.size + more > IMPORT_WHOLE_BYTES_MAX:
            raise LogbergError(
                ErrorCode.BODY_TOO_LARGE,
                f"an import has at most {IMPORT_WHOLE_BYTES_MAX:,} bytes of records",
            )
        if self._size + more > KEPT_BYTES_MAX:
            raise LogbergError(ErrorCode.THROTTLED, "other large imports are under way")
        kept.parts[number] = records
        kept.digests[number] = sha256(records).digest()
        kept.size += more
        self._size += more
        self._imports[principal, digest] = kept
        self._touch(kept)
        return tuple(sorted(kept.parts))

    def whole(self, principal: str, digest: str, count: int) -> Sequence[bytes]:
        """Return all parts in order. Raises LogbergError IMPORT_INCOMPLETE."""
        kept = self._imports.get((principal, digest)) or KeptImport()
        missing = [number for number in range(count) if number not in kept.parts]
        if not missing:
            digests = b"".join(kept.digests[number] for number in range(count))
            if sha256(digests).hexdigest() != digest:
                # Other parts than the caller means: none of them is of use.
                self._forget((principal, digest))
                missing = list(range(count))
        if missing:
            raise LogbergError(
                ErrorCode.IMPORT_INCOMPLETE,
                f"{len(missing)} of {count} parts of the import aren't here",
                {"missing": ",".join(map(str, missing))},
            )
        self._touch(kept)
        return [kept.parts[number] for number in range(count)]

    def _touch(self, kept: KeptImport) -> None:
        kept.touched = self._clock.monotonic()
        if not self._looks:
            self._looks = True
            self._clock.call_later(KEPT_S, self._look)

    def _look(self) -> None:
        """Forget the imports that nobody has touched for long."""
        self._looks = False
        until = self._clock.monotonic() - KEPT_S
        for key in [key for key, kept in self._imports.items() if kept.touched <= until]:
            self._forget(key)
        if self._imports:
            self._looks = True
            self._clock.call_later(KEPT_S / 2, self._look)

    def _forget(self, key: tuple[str, str]) -> None:
        kept = self._imports.pop(key, None)
        if kept is not None:
            self._size -= kept.size
