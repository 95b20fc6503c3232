"""Placement of replicas: the cases of `cases/placement.toml`, and properties over many seeds."""

import tomllib
from itertools import islice
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.managers.placement import PlacementError, place
from tests.unit.controller.managers.case_steps import FOLDER
from tests.unit.controller.managers.plain_placement import Candidate, placed_plainly, racks_of


def take(count, candidates, factor, seed=1):
    return list(islice(place(racks_of(candidates), factor, Random(seed)), count))


def even_racks(racks, size):
    return [Candidate(r * size + b, f"rack-{r}", False) for r in range(racks) for b in range(size)]


def held(what, case, placed):
    """Return whether one property holds of the replicas that were placed."""
    racks = dict(case["brokers"])
    fenced = set(case.get("fenced", ()))
    if what == "distinct":
        return all(len(set(replicas)) == case["factor"] for replicas in placed)
    if what == "a rack each":
        return all(len({racks[r] for r in replicas}) == case["factor"] for replicas in placed)
    if what == "even leaders":
        leaders = [replicas[0] for replicas in placed]
        counts = [leaders.count(broker) for broker in racks]
        return max(counts) - min(counts) <= 1
    if what == "fenced last":
        live = len(racks) - len(fenced)
        return all(fenced.isdisjoint(replicas[:live]) for replicas in placed)
    if what == "many pairs":
        return len({replicas[:2] for replicas in placed}) > len(racks)
    raise ValueError(what)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case["name"])
        for case in tomllib.loads((FOLDER / "placement.toml").read_text())["case"]
    ],
)
def test_case(case, seed):
    fenced = case.get("fenced", ())
    brokers = [Candidate(b, rack or None, b in fenced) for b, rack in case["brokers"]]
    if "refused" in case:
        with pytest.raises(PlacementError, match=case["refused"]):
            take(1, brokers, case["factor"], seed)
        return
    placed = take(case["partitions"], brokers, case["factor"], seed)
    assert [what for what in case["holds"] if not held(what, case, placed)] == []
    assert placed == take(case["partitions"], brokers, case["factor"], seed)


@given(
    fenced=st.lists(st.booleans(), min_size=1, max_size=12).filter(lambda f: not all(f)),
    racks=st.lists(st.sampled_from([None, "a", "b", "c"]), min_size=12, max_size=12),
    factor=st.integers(1, 12),
    seed=st.integers(0, 1000),
)
def test_replicas_are_distinct_the_first_is_live_and_fenced_ones_come_last(
    fenced, racks, factor, seed
):
    candidates = [Candidate(i, racks[i], f) for i, f in enumerate(fenced)]
    factor = min(factor, len(candidates))
    live = sum(not f for f in fenced)
    for replicas in take(20, candidates, factor, seed):
        assert len(set(replicas)) == len(replicas) == factor
        assert [fenced[r] for r in replicas] == [i >= live for i in range(factor)]


@given(
    brokers=st.lists(
        st.tuples(st.sampled_from([None, "", "a", "b", "c"]), st.booleans()),
        min_size=1,
        max_size=14,
    ).filter(lambda brokers: not all(fenced for _, fenced in brokers)),
    factor=st.integers(1, 14),
    seed=st.integers(0, 1000),
)
def test_the_answers_are_those_of_the_plain_way_with_the_same_dice(brokers, factor, seed):
    """Also behind the shuffles, and the dice are left as the plain way leaves them."""
    candidates = [Candidate(7 * i, *broker) for i, broker in enumerate(brokers)]
    factor, count = min(factor, len(candidates)), 3 * len(candidates) + 1
    dice, plain_dice = Random(seed), Random(seed)
    plain = list(islice(placed_plainly(candidates, factor, plain_dice), count))
    assert list(islice(place(racks_of(candidates), factor, dice), count)) == plain
    assert dice.random() == plain_dice.random()


@pytest.mark.parametrize(
    ("racks", "size"), [(1, 3), (2, 2), (3, 2), (3, 3), (2, 4), (4, 6), (6, 1)]
)
@pytest.mark.parametrize("factor", [1, 2, 3])
def test_leaders_are_even_over_a_multiple_of_the_brokers(racks, size, factor):
    brokers = racks * size
    for seed in range(20):
        placed = take(brokers * 3, even_racks(racks, size), min(factor, brokers), seed)
        leaders = [replicas[0] for replicas in placed]
        counts = [leaders.count(b) for b in range(brokers)]
        assert max(counts) - min(counts) <= 1, (seed, counts)


@pytest.mark.parametrize(("racks", "factor"), [(3, 3), (3, 2), (5, 3)])
def test_replicas_stand_in_different_racks_while_there_are_racks(racks, factor):
    for replicas in take(60, even_racks(racks, 3), factor):
        assert len({r // 3 for r in replicas}) == factor


def test_the_same_dice_give_the_same_answer_and_others_another():
    candidates = even_racks(3, 3)
    assert take(30, candidates, 3, 7) == take(30, candidates, 3, 7)
    assert take(30, candidates, 3, 7) != take(30, candidates, 3, 8)


def test_pairs_do_not_repeat_for_ever():
    pairs = {replicas[:2] for replicas in take(200, even_racks(1, 5), 2)}
    assert len(pairs) > 5


def test_a_rack_that_is_used_up_is_passed_over():
    candidates = [Candidate(0, "a", False), *(Candidate(i, "b", False) for i in (1, 2))]
    assert all(set(r) == {0, 1, 2} for r in take(10, candidates, 3))


@pytest.mark.parametrize(
    ("candidates", "factor", "words"),
    [
        ([], 1, "larger than"),
        ([Candidate(0, None, False)], 2, "larger than"),
        ([Candidate(0, None, True)], 1, "fenced"),
        ([Candidate(0, None, False)], 0, "1 or more"),
    ],
)
def test_what_cannot_be_placed_says_why(candidates, factor, words):
    with pytest.raises(PlacementError, match=words):
        take(1, candidates, factor)
