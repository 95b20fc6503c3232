"""Samples as a picture of text: a line a bin, a bar as long as its share.

Rule: the last bin is open, so that no sample is left out of the picture; an empty bin is shown.
"""

import itertools
from collections.abc import Sequence

BINS_MS = (0, 50, 100, 150, 200, 250, 300, 400, 500, 750, 1000, 2000)
_WIDTH = 40


def histogram(samples: Sequence[float], bins: Sequence[float] = BINS_MS, unit: str = "ms") -> str:
    """Draw the samples, from the first bin that has one to the last."""
    edges = [*bins, float("inf")]
    counts = [
        (low, high, sum(low <= one < high for one in samples))
        for low, high in itertools.pairwise(edges)
    ]
    while counts and not counts[0][2]:
        counts.pop(0)
    while counts and not counts[-1][2]:
        counts.pop()
    most = max((count for _, _, count in counts), default=0)
    lines = []
    for low, high, count in counts:
        name = (
            f"{low:>5} to {high:>4} {unit}" if high != float("inf") else f"{low:>5} {unit} or more"
        )
        bar = "█" * max(round(_WIDTH * count / most), 1 if count else 0)
        lines.append(f"{name:<16} {count:>5}  {bar}".rstrip())
    return "\n".join(lines)
