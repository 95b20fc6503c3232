"""The inputs that Hypothesis draws: a seed of the target, damaged in a few places.

Rule: an input is drawn as a list of edits, so that Hypothesis makes a failing one small.
"""

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
_COUNTS = st.sampled_from((1, 2, 3, 17, 300, 3_000))
_EDITS = st.lists(
    st.builds(
        Edit,
        st.sampled_from(("write", "write", "insert", "cut", "leave out", "repeat")),
        st.integers(0, _PLACES - 1),
        st.sampled_from(_TELLING) | st.binary(min_size=1, max_size=9),
        _COUNTS,
    ),
    max_size=4,
)


def damaged(seeds: list[bytes]) -> st.SearchStrategy[bytes]:
    """Return the strategy: damaged seeds, and a few bytes that are nothing at all."""

    def applied(seed: bytes, edits: list[Edit]) -> bytes:
        for edit in edits:
            seed = edit.apply(seed)
        return seed

    return st.builds(applied, st.sampled_from(seeds), _EDITS) | st.binary(max_size=64)
