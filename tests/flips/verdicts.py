"""The verdicts on opening harmed files, and their counts.

Rule: `harmless` requires equal content, and `detected` the product's own report. Everything else
gets its own name.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

DETECTED = "detected"
HARMLESS = "harmless"
SILENT = "silent"
UNCLEAN = "unclean"
_WORST_FIRST = (UNCLEAN, SILENT, DETECTED, HARMLESS)


class Verdict(NamedTuple):
    """What came of one harm."""

    kind: str
    how: str
    """The error or event that told; what differs; or why nothing does."""

    @property
    def good(self) -> bool:
        return self.kind in (DETECTED, HARMLESS)


def worst(verdicts: list[Verdict]) -> Verdict:
    """Of several ways to open the same files, what the worst of them made of it."""
    return min(verdicts, key=lambda verdict: _WORST_FIRST.index(verdict.kind))


def unclean(error: Exception) -> Verdict:
    return Verdict(UNCLEAN, f"{type(error).__name__}: {error}")


@dataclass
class Tally:
    """The count for one kind of file."""

    file: str
    size: int
    """Bytes of the files that were harmed."""
    kinds: Counter[str] = field(default_factory=Counter)
    how: Counter[str] = field(default_factory=Counter)
    ways: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        return self.kinds.total()

    @property
    def flips(self) -> int:
        """Harms that are flipped bits, one or several."""
        return sum(count for way, count in self.ways.items() if "bit" in way)

    @property
    def bad(self) -> int:
        return self.kinds[SILENT] + self.kinds[UNCLEAN]

    def add(self, way: str, where: str, verdict: Verdict) -> None:
        self.kinds[verdict.kind] += 1
        self.how[f"{verdict.kind}: {verdict.how}"] += 1
        self.ways[way] += 1
        if not verdict.good and len(self.findings) < 100:
            self.findings.append(f"{self.file}: {way} at {where}: {verdict.kind}: {verdict.how}")

    def figures(self) -> dict[str, object]:
        """As a piece of evidence has them."""
        return {
            "file": self.file,
            "bytes": self.size,
            "flips": self.flips,
            "harmed_otherwise": self.total - self.flips,
            "silent": self.bad,
            "detected": self.kinds[DETECTED],
            "harmless": self.kinds[HARMLESS],
            "how": dict(self.how.most_common()),
            "ways": dict(self.ways.most_common()),
        }
