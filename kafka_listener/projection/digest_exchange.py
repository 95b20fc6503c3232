"""Compares the projected logs of the controllers: digests at common offsets (ADR 0071).

Each controller tells the others the digests at some ends of batches, every few seconds while its
log grows. Whoever differs from a majority at an offset has projected other bytes: it says so with
both digests, and Kafka's brokers get nothing from it until it is started again. If two differ and
no third has told that offset for some seconds, both wait for the third.

Rule: only offsets that both know are compared. A window's chain begins anew (`digest.py`), so what
differs once may be equal later. The verdict against this controller stays.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from struct import Struct
from typing import Final, NamedTuple

from structlog.typing import FilteringBoundLogger

from kafka_listener.projection.digest import EVERY_OFFSETS, DigestChain
from runtime.clock import Clock

EVERY_S: Final = 2.0
_THIRD_S: Final = 2 * EVERY_S
"""So long two that differ wait for a third before they stop."""
_REPEATS: Final = 3
"""A log that has ended growing is told so many times: a message may be lost."""
_RULES: Final = b"\x01"
"""Which rules of the projection a digest is of. Controllers of other rules are not compared."""
_SENT_BYTES: Final = 16
_ENTRY: Final = Struct(f">q{_SENT_BYTES}s")
_SENT: Final = 20
_KEPT: Final = 512
"""The newest offsets of a peer that are remembered."""
_JUDGED: Final = 64
"""So many offsets with a difference are enough to judge by."""


class _Difference(NamedTuple):
    """Where other controllers have other bytes."""

    offset: int
    ours: bytes
    theirs: bytes
    peers: list[int]


class DigestExchange:
    """Tells this controller's digests, and judges those of the others."""

    def __init__(
        self,
        clock: Clock,
        node_id: int,
        digests: DigestChain,
        tell: Callable[[bytes], None],
        voters: Callable[[], tuple[int, ...]],
        takes_part: Callable[[], bool],
        on_verdict: Callable[[], None],
        log: FilteringBoundLogger,
    ) -> None:
        """`tell` sends bytes to the other controllers; `voters` returns the ids of all.

        `takes_part` returns False while this controller can't have the bytes of the others, because
        it has no cluster key. `on_verdict` is called when `verdict` has changed.
        """
        self._clock = clock
        self._node_id = node_id
        self._digests = digests
        self._tell = tell
        self._voters = voters
        self._takes_part = takes_part
        self._on_verdict = on_verdict
        self._log = log
        self._told: dict[int, dict[int, bytes]] = {}
        """By peer: its digests by offset."""
        self._own: dict[int, bytes] = {}
        """Our digests at offsets where a peer's differed."""
        self._last_told = b""
        self._repeated = 0
        self._stopped = False
        self._undecided_since: float | None = None
        self.wrong = False
        """A majority has other bytes. It stays true until the process is started again."""
        self.verdict = ""
        """Why this controller must not show its projected log; empty: it may."""
        clock.call_later(EVERY_S, self._every)

    def stop(self) -> None:
        """Tell nothing more."""
        self._stopped = True

    def restart(self) -> None:
        """The log goes on at another place: an image was loaded."""
        self._own.clear()

    def take(self, node_id: int, data: bytes) -> None:
        """A peer tells its digests. What isn't a list of them is ignored."""
        entries = data.removeprefix(_RULES)
        if entries == data or len(entries) % _ENTRY.size or node_id not in self._voters():
            return
        known = self._told.setdefault(node_id, {})
        known.update(_ENTRY.iter_unpack(entries))
        for offset in sorted(known)[:-_KEPT]:
            del known[offset]
        if self._takes_part():
            self._compare(known)

    def _every(self) -> None:
        if self._stopped:
            return
        self._clock.call_later(EVERY_S, self._every)
        data = self._encoded()
        self._repeated = self._repeated + 1 if data == self._last_told else 0
        self._last_told = data
        if data and self._repeated < _REPEATS:
            self._tell(data)
        if self._takes_part():
            for known in self._told.values():
                self._compare(known)

    def _encoded(self) -> bytes:
        """Return some of the newest digests, and those at the ends of the newest windows.

        Nothing, if there is none or this controller takes no part.
        """
        if not self._takes_part():
            return b""
        kept = sorted(self._digests.kept().items())
        newest = kept[-_SENT // 2 :]
        ends = self._digests.window_ends()[-_SENT // 2 :]
        entries = {**dict(newest), **dict(ends)}
        packed = b"".join(_ENTRY.pack(*entry) for entry in sorted(entries.items()))
        return _RULES + packed if packed else b""

    def _compare(self, known: Mapping[int, bytes]) -> None:
        own = self._digests.kept()
        for offset, digest in known.items():
            ours = own.get(offset)
            if ours is not None and ours[: len(digest)] != digest and len(self._own) < _JUDGED:
                self._own[offset] = ours
        if self._own and not self.wrong:
            self._judge()

    def _judge(self) -> None:
        """Find a majority at the offsets where somebody differs."""
        majority = len(self._voters()) // 2 + 1
        undecided: _Difference | None = None
        sound: set[int] = set()
        """Windows in which a majority agrees with us at a later offset, so before it, too."""
        for offset, ours in sorted(self._own.items(), reverse=True):
            window = (offset - 1) // EVERY_OFFSETS
            said = {peer: told[offset] for peer, told in self._told.items() if offset in told}
            counts = Counter(said.values())
            same = 1 + counts.pop(ours[:_SENT_BYTES], 0)
            if same >= majority:
                sound.add(window)
            if not counts or window in sound:
                continue
            [(theirs, most)] = counts.most_common(1)
            found = _Difference(offset, ours, theirs, [p for p in said if said[p] == theirs])
            if most >= majority:
                self.wrong = True
                self._decide(found, "the majority: this one is wrong, until it is started again")
                return
            undecided = found
        if undecided is not None:
            if self._waited_for_the_third():
                self._decide(undecided, "and no third tells which is wrong")
            return
        self._undecided_since = None
        if self.verdict:
            self.verdict = ""
            self._log.warning("kafka_projection_agrees_again")
            self._on_verdict()

    def _waited_for_the_third(self) -> bool:
        """Tell whether a third controller had time to tell its digests."""
        now = self._clock.monotonic()
        if self._undecided_since is None:
            self._undecided_since = now
        return now - self._undecided_since >= _THIRD_S

    def _decide(self, found: _Difference, which: str) -> None:
        names = ", ".join(map(str, sorted(found.peers)))
        verdict = (
            f"the projected log of this controller ({self._node_id}) differs at offset "
            f"{found.offset} from that of controller {names}, {which}"
        )
        if verdict == self.verdict:
            return
        self.verdict = verdict
        self._log.error(
            "kafka_projection_differs",
            offset=found.offset,
            own_digest=found.ours[:_SENT_BYTES].hex(),
            other_digest=found.theirs.hex(),
            others=names,
            reason=verdict,
        )
        self._on_verdict()
