"""Our bytes of every served request and response are those of kio, both ways."""

from random import Random

import pytest

from tests.oracles.kio.comparing import difference, drawn
from tests.oracles.kio.pairing import Pair
from tests.oracles.kio.served import all_pairs

PAIRS = list(all_pairs())
KNOWN = [pair for pair in PAIRS if pair.kios is not None]
LACKING: set[tuple[str, int]] = set()
"""What kio doesn't have: (name, version)."""
DRAWS = 3


@pytest.mark.parametrize("pair", KNOWN, ids=lambda pair: f"{pair.name}-{pair.version}")
def test_both_codecs_write_the_same_bytes_and_read_them_alike(pair: Pair) -> None:
    random = Random(f"{pair.name} {pair.version}")
    for _ in range(DRAWS):
        assert not difference(pair, drawn(random, pair))


def test_what_kio_lacks_is_known() -> None:
    assert {(pair.name, pair.version) for pair in PAIRS if pair.kios is None} == LACKING
