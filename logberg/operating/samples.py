"""Reads the figures that a node answers at /metrics, in Prometheus' text form.

Rule: what can't be read is left out. A figure that a node doesn't have is None, not 0: an older
release lacks figures.
"""

import math
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

_LINE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)(?: -?\d+)?")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"')
_ESCAPED = {"\\n": "\n", '\\"': '"', "\\\\": "\\"}


class Sample(NamedTuple):
    """One line."""

    name: str
    labels: Mapping[str, str]
    value: float


class Samples:
    """The figures of one node at one moment."""

    def __init__(self, text: str) -> None:
        self._by_name: dict[str, list[Sample]] = {}
        for sample in _read(text):
            self._by_name.setdefault(sample.name, []).append(sample)

    def all(self, name: str) -> list[Sample]:
        """Return the samples of this name."""
        return self._by_name.get(name, [])

    def value(self, name: str, **labels: str) -> float | None:
        """Return one figure; None: the node doesn't have it."""
        for sample in self.all(name):
            if all(sample.labels.get(label) == wanted for label, wanted in labels.items()):
                return sample.value
        return None

    def count(self, histogram: str) -> float:
        """Return how many values a histogram has counted."""
        return self.value(f"{histogram}_count") or 0.0

    def quantile(self, histogram: str, share: float) -> float | None:
        """Return a bound below which this share of a histogram's values lies; None: no values."""
        total = self.count(histogram)
        if not total:
            return None
        for sample in self.all(f"{histogram}_bucket"):
            if sample.value >= share * total:
                return float(sample.labels.get("le", "inf"))
        return math.inf


def _read(text: str) -> Iterator[Sample]:
    for line in text.splitlines():
        found = _LINE.fullmatch(line)
        if found is None:
            continue
        try:
            value = float(found[3])
        except ValueError:
            continue
        labels = {
            name: re.sub(r"\\.", lambda pair: _ESCAPED.get(pair[0], pair[0]), quoted)
            for name, quoted in _LABEL.findall(found[2] or "")
        }
        yield Sample(found[1], labels, value)
