"""Figures for Prometheus: counters, gauges and histograms, and their text form 0.0.4.

Rule: a metric is declared once, with a sentence of help and the names of its labels. Every metric
limits the number of its label sets; otherwise clients could fill the memory with label values.
Values beyond the limit are counted under `other`.

This module replaces the usual client library, which has a global registry, locks and multiprocess
files that a process with one loop doesn't need. Counts that are kept elsewhere (links, HTTP) are
read by a callback when the metrics are scraped.
"""

import math
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
LABEL_SETS_MAX: Final = 1000
OTHER: Final = "other"
SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Buckets for durations."""

Labels = tuple[str, ...]
Sample = tuple[str, str, float]
"""Suffix of the name, labels as text, value."""
_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(r"(?!__)[a-zA-Z_][a-zA-Z0-9_]*")


class _Metric:
    """What all metrics have: name, help, label names, and a value for each label set."""

    kind = "untyped"

    def __init__(self, name: str, text: str, labels: Sequence[str]) -> None:
        assert _NAME.fullmatch(name), f"not a metric's name: {name!r}"
        assert all(_LABEL.fullmatch(label) for label in labels), f"label names of {name}: {labels}"
        self.name = name
        self.text = text
        self.labels = tuple(labels)

    def samples(self) -> Iterator[Sample]:
        """Yield the lines of this metric, in a stable order."""
        raise AssertionError(f"{type(self).__name__} has no samples")

    def label_text(self, values: Labels, more: str = "") -> str:
        """Return `{name="value",...}`; the empty string without labels."""
        parts = [
            f'{name}="{_escaped(value)}"' for name, value in zip(self.labels, values, strict=True)
        ]
        if more:
            parts.append(more)
        return "{" + ",".join(parts) + "}" if parts else ""

    def bounded(self, children: Mapping[Labels, object], values: Labels) -> Labels:
        """Return the label set to count under."""
        assert len(values) == len(self.labels), f"{self.name} has the labels {self.labels}"
        if values in children or len(children) < LABEL_SETS_MAX or not self.labels:
            return values
        return (OTHER,) * len(self.labels)


class Counter(_Metric):
    """A number that only grows."""

    kind = "counter"

    def __init__(self, name: str, text: str, labels: Sequence[str] = ()) -> None:
        super().__init__(name, text, labels)
        self._values: dict[Labels, float] = {} if labels else {(): 0}

    def add(self, amount: float = 1, *labels: str) -> None:
        """Count `amount`, which is not negative, under the label values."""
        assert amount >= 0, f"{self.name} only counts up"
        key = self.bounded(self._values, labels)
        self._values[key] = self._values.get(key, 0) + amount

    def samples(self) -> Iterator[Sample]:
        for values in sorted(self._values):
            yield "", self.label_text(values), self._values[values]


class Gauge(_Metric):
    """A number that may grow and shrink."""

    kind = "gauge"

    def __init__(self, name: str, text: str, labels: Sequence[str] = ()) -> None:
        super().__init__(name, text, labels)
        self._values: dict[Labels, float] = {}

    def set(self, value: float, *labels: str) -> None:
        """Set the value under the label values."""
        self._values[self.bounded(self._values, labels)] = value

    def forget(self, *labels: str) -> None:
        """Remove the label values, because what they name no longer exists."""
        self._values.pop(labels, None)

    def samples(self) -> Iterator[Sample]:
        for values in sorted(self._values):
            yield "", self.label_text(values), self._values[values]


class Histogram(_Metric):
    """Counts observations by the size of their value."""

    kind = "histogram"

    def __init__(
        self, name: str, text: str, buckets: Sequence[float] = SECONDS, labels: Sequence[str] = ()
    ) -> None:
        super().__init__(name, text, labels)
        assert list(buckets) == sorted(set(buckets)), f"buckets of {name} must rise"
        self._bounds = tuple(buckets)
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}
        if not labels:
            self._child(())

    def observe(self, value: float, *labels: str) -> None:
        """Count one observation."""
        key = self.bounded(self._counts, labels)
        self._child(key)[bisect_left(self._bounds, value)] += 1
        self._sums[key] += value

    def samples(self) -> Iterator[Sample]:
        for values in sorted(self._counts):
            total = 0
            bounds = (*self._bounds, math.inf)
            for bound, count in zip(bounds, self._counts[values], strict=True):
                total += count
                yield "_bucket", self.label_text(values, f'le="{_number(bound)}"'), total
            yield "_sum", self.label_text(values), self._sums[values]
            yield "_count", self.label_text(values), total

    def _child(self, key: Labels) -> list[int]:
        counts = self._counts.get(key)
        if counts is None:
            counts = self._counts[key] = [0] * (len(self._bounds) + 1)
            self._sums[key] = 0.0
        return counts


class Read(_Metric):
    """A counter or gauge that is kept elsewhere and read when the metrics are scraped."""

    def __init__(
        self,
        kind: str,
        name: str,
        text: str,
        read: Callable[[], float | Mapping[Labels, float]],
        labels: Sequence[str] = (),
    ) -> None:
        super().__init__(name, text, labels)
        self.kind = kind
        self._read = read

    def samples(self) -> Iterator[Sample]:
        found = self._read()
        values: Mapping[Labels, float] = found if isinstance(found, Mapping) else {(): found}
        for labels in sorted(values)[:LABEL_SETS_MAX]:
            yield "", self.label_text(labels), values[labels]


class ReadHistogram(_Metric):
    """A histogram without labels that is kept elsewhere and read when metrics are scraped."""

    kind = "histogram"

    def __init__(
        self,
        name: str,
        text: str,
        bounds: Sequence[float],
        read: Callable[[], tuple[Sequence[int], float]],
    ) -> None:
        super().__init__(name, text, ())
        self._bounds = (*bounds, math.inf)
        self._read = read

    def samples(self) -> Iterator[Sample]:
        counts, seconds = self._read()
        total = 0
        for bound, count in zip(self._bounds, counts, strict=True):
            total += count
            yield "_bucket", self.label_text((), f'le="{_number(bound)}"'), total
        yield "_sum", "", seconds
        yield "_count", "", total


M = TypeVar("M", bound=_Metric)


class Registry:
    """The metrics of one process (or of one node, in a simulation)."""

    def __init__(self) -> None:
        self._metrics: dict[str, _Metric] = {}

    def counter(self, name: str, text: str, labels: Sequence[str] = ()) -> Counter:
        """Declare a counter; by custom its name ends in `_total`."""
        return self._declared(Counter(name, text, labels))

    def gauge(self, name: str, text: str, labels: Sequence[str] = ()) -> Gauge:
        """Declare a gauge."""
        return self._declared(Gauge(name, text, labels))

    def histogram(
        self, name: str, text: str, buckets: Sequence[float] = SECONDS, labels: Sequence[str] = ()
    ) -> Histogram:
        """Declare a histogram; buckets are upper bounds, inclusive, rising, without infinity."""
        return self._declared(Histogram(name, text, buckets, labels))

    def read_counter(
        self,
        name: str,
        text: str,
        read: Callable[[], float | Mapping[Labels, float]],
        labels: Sequence[str] = (),
    ) -> None:
        """Declare a counter kept elsewhere: `read` gives its value, or values by label set."""
        self._declared(Read("counter", name, text, read, labels))

    def read_gauge(
        self,
        name: str,
        text: str,
        read: Callable[[], float | Mapping[Labels, float]],
        labels: Sequence[str] = (),
    ) -> None:
        """Declare a gauge kept elsewhere; as `read_counter`."""
        self._declared(Read("gauge", name, text, read, labels))

    def read_histogram(
        self,
        name: str,
        text: str,
        bounds: Sequence[float],
        read: Callable[[], tuple[Sequence[int], float]],
    ) -> None:
        """Declare a histogram kept elsewhere.

        `read` returns the number of observations up to each bound and beyond the last, each counted
        once, and the sum of all values.
        """
        self._declared(ReadHistogram(name, text, bounds, read))

    def render(self) -> bytes:
        """Return all metrics in Prometheus' text form, to be sent as `CONTENT_TYPE`."""
        lines: list[str] = []
        for name in sorted(self._metrics):
            metric = self._metrics[name]
            lines.append(f"# HELP {name} {_escaped_help(metric.text)}")
            lines.append(f"# TYPE {name} {metric.kind}")
            lines += [
                f"{name}{suffix}{labels} {_number(value)}"
                for suffix, labels, value in metric.samples()
            ]
        return ("\n".join(lines) + "\n").encode() if lines else b""

    def _declared(self, metric: M) -> M:
        assert metric.name not in self._metrics, f"{metric.name} is declared twice"
        self._metrics[metric.name] = metric
        return metric


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _escaped_help(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if math.isnan(value):
        return "NaN"
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(float(value))
