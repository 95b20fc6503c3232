"""One bit of every byte of each small file, and proof that the judges would see a silent one."""

from itertools import islice

import pytest

from tests.flips.__main__ import KINDS, Case, systematic
from tests.flips.harm import Drawing
from tests.flips.verdicts import Tally


def tally_of(case: Case, *, drawn: int = 60) -> Tally:
    tally = Tally(case.file, 0)
    drawing = Drawing(case.files, case.targets, case.others, 1)
    for harms in (systematic(case, thinned=True), islice(iter(drawing), drawn)):
        for harm in harms:
            tally.add(harm.way, harm.where, case.judge(harm.files))
    return tally


@pytest.mark.parametrize("name", KINDS)
def test_no_flipped_bit_passes_in_silence(name: str) -> None:
    for make in KINDS[name].small:
        case = make()
        tally = tally_of(case)
        assert tally.findings == []
        assert tally.flips >= sum(len(case.files[target]) for target in case.targets)
