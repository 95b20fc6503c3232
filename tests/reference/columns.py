"""Reads a block of topics of a checkpoint in format 2: docs/format.md, section 8.

It was written from that page, and imports nothing of the product.
"""

import struct
from collections.abc import Sequence
from typing import Any

from tests.reference.schema import RefusedError


def demand(right: bool, what: str) -> None:
    """Raise RefusedError unless it is right."""
    if not right:
        raise RefusedError(f"a block of topics: {what}")


class Columns:
    """The parts of a block, one behind the other."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def take(self, size: int) -> bytes:
        """Read bytes."""
        taken, self.data = self.data[:size], self.data[size:]
        demand(len(taken) == size, "it ends too early")
        return taken

    def number(self) -> int:
        """Read a u32."""
        return int.from_bytes(self.take(4), "big")

    def column(self, count: int) -> list[int]:
        """Read integers."""
        if not count:
            return []
        base, width = struct.unpack(">iB", self.take(5))
        more = [int.from_bytes(self.take(width), "big") for _ in range(count)]
        narrowest = next(width for width in (0, 1, 2, 4) if max(more) < 1 << 8 * width)
        demand(min(more) == 0 and width == narrowest, "a column is not in its only form")
        return [base + one for one in more]

    def lists(self, count: int) -> list[list[int]]:
        """Read lists: their lengths, then all items."""
        sizes = self.column(count)
        items = iter(self.column(sum(sizes)))
        return [[next(items) for _ in range(size)] for size in sizes]

    def exceptions(self, usual: Sequence[Any]) -> list[Any]:
        """Read the lists that are not the usual ones."""
        count = self.number()
        places = self.column(count)
        found = dict(zip(places, self.lists(count), strict=True))
        demand(list(found) == sorted(found), "exceptions in another order")
        demand(all(usual[place] != one for place, one in found.items()), "no exception")
        return [found.get(place, one) for place, one in enumerate(usual)]


def decode_topics(frame: bytes, topic_before: bytes) -> list[list[Any]]:
    """Return the records of a block, as arrays.

    `topic_before` is the topic of the last partition of the block before.
    """
    columns = Columns(frame[16:-4])
    names = columns.number()
    continued = columns.take(1)[0]
    if continued:
        demand(columns.take(16) == topic_before, "it continues another topic")
    texts = [columns.take(size).decode("utf-8") for size in columns.column(names)]
    ids = [columns.take(16) for _ in texts]
    counts = columns.column(names + continued)
    rows = sum(counts)
    firsts = iter(columns.column(len([count for count in counts if count])))
    gaps = iter(columns.column(rows - len([count for count in counts if count])))
    replicas = columns.lists(rows)
    known = columns.column(rows)
    table = [columns.take(16) for _ in range(columns.number())]
    places = iter(
        columns.column(sum(len(one) for one, flag in zip(replicas, known, strict=True) if flag))
    )
    isr = columns.exceptions(replicas)
    removing, adding = (columns.exceptions([[]] * rows) for _ in range(2))
    elr, last_elr = (columns.exceptions([None] * rows) for _ in range(2))
    leader, leader_epoch, epoch, recovery = (columns.column(rows) for _ in range(4))
    demand(not columns.data, "bytes behind it")
    records: list[list[Any]] = []
    row = 0
    for place, count in enumerate(counts):
        topic_id = topic_before
        if place or not continued:
            topic_id = ids[place - continued]
            records.append([200, texts[place - continued], topic_id])
        number = -1
        for first in range(count):
            number = next(firsts) if first == 0 else number + 1 + next(gaps)
            directories = [table[next(places)] for _ in replicas[row]] if known[row] else []
            fields: list[list[Any]] = [
                replicas,
                isr,
                removing,
                adding,
                leader,
                leader_epoch,
                epoch,
                recovery,
            ]
            records.append(
                [302, number, topic_id]
                + [field[row] for field in fields]
                + [directories, elr[row], last_elr[row]]
            )
            row += 1
    return records
