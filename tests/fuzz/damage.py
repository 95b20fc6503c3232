"""Damaged seeds of a target: all that Hypothesis draws, and half of what atheris does.

Rule: Hypothesis draws a list of edits, so that it makes a failing input small. atheris gets the
same edits from a random number. By itself it keeps what reaches new branches of our own code. Many
decoders are C, where it sees none, so it would soon send them a byte or two.
"""

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from hypothesis import strategies as st

_PLACES = 1 << 16


class Edit(NamedTuple):
    """One damage."""

    kind: str
    place: int
    """From 0 to 65535, as a share of the length."""
    data: bytes
    count: int

    def apply(self, whole: bytes) -> bytes:
        """Return the bytes with this damage."""
        at = self.place * (len(whole) + 1) // _PLACES
        match self.kind:
            case "write":
                return whole[:at] + self.data + whole[at + len(self.data) :]
            case "insert":
                return whole[:at] + self.data * self.count + whole[at:]
            case "cut":
                return whole[:at]
            case "leave out":
                return whole[:at] + whole[at + self.count :]
        end = at + max(1, len(self.data))
        return whole[:end] + whole[at:end] * self.count + whole[end:]


_TELLING = (
    b"\x00\x00\x00\x00",
    b"\x7f\xff\xff\xff",
    b"\x80\x00\x00\x00",
    b"\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\x91",
    b"\xa1\xff",
    b"[",
    b'"\\ud800"',
    b"\n\n",
    b"-",
    b"\xdd\xff\xff\xff\xff",
    b"\xc1",
    b"e99",
)
"""Numbers at the ends of their ranges, and bytes that begin or break something in our formats."""
_KINDS = ("write", "write", "insert", "cut", "leave out", "repeat")
_TIMES = (1, 2, 3, 17, 300, 3_000)
_MOST_EDITS = 4
_BYTES_MOST = 9
_EDITS = st.lists(
    st.builds(
        Edit,
        st.sampled_from(_KINDS),
        st.integers(0, _PLACES - 1),
        st.sampled_from(_TELLING) | st.binary(min_size=1, max_size=_BYTES_MOST),
        st.sampled_from(_TIMES),
    ),
    max_size=_MOST_EDITS,
)


def damaged(seeds: list[bytes]) -> st.SearchStrategy[bytes]:
    """Return the strategy: damaged seeds, and a few bytes that are nothing at all."""
    return st.builds(_applied, st.sampled_from(seeds), _EDITS) | st.binary(max_size=64)


def damaged_at_random(seeds: Sequence[bytes], random: Random) -> bytes:
    """Return a seed with one edit or a few."""
    edits = []
    for _ in range(random.randint(1, _MOST_EDITS)):
        data = random.randbytes(random.randint(1, _BYTES_MOST))
        if random.getrandbits(1):
            data = random.choice(_TELLING)
        edits.append(
            Edit(random.choice(_KINDS), random.randrange(_PLACES), data, random.choice(_TIMES))
        )
    return _applied(random.choice(seeds), edits)


def _applied(seed: bytes, edits: list[Edit]) -> bytes:
    for edit in edits:
        seed = edit.apply(seed)
    return seed
