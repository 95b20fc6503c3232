"""Cuts the power under real processes: nothing acknowledged is lost.

A build that syncs nothing is noticed.
"""

from pathlib import Path

import pytest

from tests.power.cuts import cut_again_and_again, powered
from tests.power.mounting import NoForgettingError, require

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]  # it may have to install fuse3


@pytest.fixture(autouse=True)
def mountable() -> None:
    try:
        require()
    except NoForgettingError as error:
        pytest.skip(str(error))


def test_what_was_acknowledged_survives_a_loss_of_power_of_all_of_one_and_of_a_majority(
    tmp_path: Path,
) -> None:
    with powered(tmp_path / "cluster", seed=1) as cluster:
        cuts = list(cut_again_and_again(cluster, 3, seed=1))
    assert sorted(map(len, cuts)) == [1, 2, 3]


def test_a_build_that_does_not_sync_loses_what_it_acknowledged(tmp_path: Path) -> None:
    """Or ends itself, or has no leader any more: its peers remember what it has forgotten."""
    seen = r"lost with the power of|ended with|never: .* are back after a loss of power"
    with (
        pytest.raises(AssertionError, match=seen),
        powered(tmp_path / "cluster", seed=1, synced=False) as cluster,
    ):
        list(cut_again_and_again(cluster, 8, seed=1))
