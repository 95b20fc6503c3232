"""Five controllers in three regions elect, commit, and survive the loss of a region."""

import pytest

from tests.simulation.regions import ROUND_TRIP_MS, Regions, Weather, quantile

NEAREST_MAJORITY_MS = {"A": ROUND_TRIP_MS["AB"], "B": ROUND_TRIP_MS["AB"], "C": ROUND_TRIP_MS["BC"]}
"""By the leader's region: the round trip to the second of the others, who makes a majority."""
OTHER_REGIONS = {"A": "BC", "B": "AC", "C": "AB"}
LOAD_S, PER_S = 3.0, 5.0
ASKED = int(LOAD_S * PER_S)


def lives(regions: Regions) -> list[int]:
    """Return how many processes each broker has had: one that lost its session ends."""
    return [host.incarnations for host in regions.cluster.broker_hosts.values()]


@pytest.mark.simulation
@pytest.mark.parametrize("first", OTHER_REGIONS)
def test_a_change_costs_a_round_trip_to_the_nearest_majority_and_a_lost_region_costs_an_election(
    first: str,
) -> None:
    regions = Regions(1, first, Weather(lost=0.0))
    regions.start()
    assert regions.cluster.leader() == 1

    epoch = regions.epoch()
    regions.load(first, LOAD_S, PER_S)
    near = regions.clients[first]
    assert (len(near.changes_ms), len(near.reads_ms), near.failures) == (ASKED, ASKED, 0)
    nearest_ms = NEAREST_MAJORITY_MS[first]
    assert nearest_ms <= quantile(near.changes_ms, 0.5) < 1.5 * nearest_ms
    assert min(near.reads_ms) >= nearest_ms
    assert regions.epoch() == epoch

    regions.cut_off(first)
    # A follower waits for one to two election timeouts; another election may follow.
    regions.until(lambda: regions.leads_outside(first), 2.5)
    far = OTHER_REGIONS[first][0]
    before = len(near.changes_ms)
    regions.load(first + far, LOAD_S, PER_S)
    assert len(regions.clients[far].changes_ms) == ASKED
    assert len(near.changes_ms) == before, "a region without a majority acknowledged a change"

    regions.rejoin(first)
    regions.until(regions.settled, 60.0)
    epoch = regions.epoch()
    regions.world.run_for(10.0)
    assert regions.epoch() == epoch, "elections go on after the region came back"
    assert regions.fenced() == 0
    assert lives(regions) == [1] * len(regions.cluster.broker_hosts)
    regions.cluster.invariants.at_the_end()


@pytest.mark.simulation
def test_lost_packets_and_jitter_cause_no_election() -> None:
    """Five losses in a hundred do, now and then, if the leader stands alone in its region."""
    regions = Regions(2, "C", Weather(jitter=0.5, lost=0.01))
    regions.start()
    epoch = regions.epoch()
    regions.load("C", 50.0, 1.0)
    assert regions.epoch() == epoch
    assert len(regions.clients["C"].changes_ms) == 50


@pytest.mark.simulation
def test_a_lost_packet_delays_what_is_behind_it_on_the_same_connection() -> None:
    profile = Weather(jitter=0.0, lost=0.5).path(70)
    dice = Regions(1, "A").world.random("packets")
    delays = {profile.draw_us(dice) for _ in range(1_000)}
    # A loss costs 200 ms and a round trip, the next one of the same packet twice that.
    assert sorted(delays)[:3] == [35_000, 35_000 + 270_000, 35_000 + 3 * 270_000]
