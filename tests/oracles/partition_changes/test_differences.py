"""Each documented difference has a case: Kafka's answer, ours, and that it is excused."""

import pytest

from tests.oracles.partition_changes import ours
from tests.oracles.partition_changes.comparing import Judged, judge
from tests.oracles.partition_changes.differences import DIFFERENCES
from tests.oracles.partition_changes.lines import read_answer, read_case, show_record

CASES = [
    (
        "added and removed at once",
        "replicas=1,2,3 dirs=abc isr=1,2 adding=3 leader=1 | reassign=1,2 alive=1,2",
        "removing=3",
        "leader=1 replicas=1,2 adding= dirs=ab",
    ),
    (
        "a dead last known leader",
        "replicas=1,2 dirs=ab last=2 | alive=1 use-elr",
        "leader=2 isr=2 last= recovery=1",
        "none",
    ),
    (
        "a dead last known leader",
        "replicas=1 dirs=a last=2 | alive=1,2 use-elr",
        "leader=2 isr=2 last= recovery=1",
        "none",
    ),
    (
        "strangers in the ELR",
        "replicas=6,7 dirs=ab isr=6,7 removing=7 leader=7 | isr=6 alive=6 min=2 use-elr",
        "leader=6 isr=6 elr=7 replicas=6 removing= dirs=a",
        "leader=6 isr=6 replicas=6 removing= dirs=a",
    ),
    (
        "an ELR of strangers only",
        "replicas=1 dirs=a isr=1 last=2 | isr= replicas=2 removing= adding= alive=2 use-elr",
        "leader=-1 isr= elr=1 replicas=2 dirs=U",
        "leader=2 isr=2 last= recovery=1 replicas=2 dirs=U",
    ),
    (
        "an ELR of strangers only",
        "replicas=6,5 dirs=ba elr=6 last=2 | replicas=5,2 alive=2,5 use-elr elect=UNCLEAN",
        "leader=5 isr=5 elr= last= recovery=1 replicas=5,2 dirs=aU",
        "leader=2 isr=2 elr= last= recovery=1 replicas=5,2 dirs=aU",
    ),
    (
        "a leader outside the ISR",
        "replicas=1 dirs=a isr=1 leader=1 | isr= alive=1 use-elr",
        "isr= elr=1",
        "none",
    ),
    (
        "nobody is the last known leader",
        "replicas=5,1 dirs=ab isr=1,5 removing=5 | use-elr",
        "leader=-1 isr=1 last=-1 replicas=1 removing= dirs=b",
        "leader=-1 isr=1 replicas=1 removing= dirs=b",
    ),
    (
        "recovered by an unclean election",
        "replicas=7,8 dirs=ab isr=8 recovering | recovery=0 alive=7 elect=UNCLEAN",
        "leader=7 isr=7 recovery=0",
        "leader=7 isr=7",
    ),
    (
        "an ELR from before",
        "replicas=6 dirs=a elr=6 | alive=6",
        "leader=6 isr=6 elr=",
        "elr=",
    ),
    (
        "an ELR beside an ISR that is enough",
        "replicas=1,4 dirs=ab elr=1,4 last=4 | alive=4 min=1 use-elr",
        "leader=4 isr=4 elr=1 last=",
        "leader=4 isr=4 elr= last=",
    ),
]


def judged(line: str, kafka: str) -> Judged:
    """Compare with what Kafka answers, as replay takes it."""
    case = read_case(line)
    [theirs] = ours.replayed([case], [read_answer(kafka).record])
    [our] = ours.answers([case])
    return judge(case, theirs, our)


@pytest.mark.parametrize(("name", "line", "kafka", "our"), CASES)
def test_we_differ_as_documented(name, line, kafka, our):
    found = judged(line, kafka)
    assert show_record(found.ours.record) == our
    assert [one.name for one in found.excuses] == [name]
    assert not found.wrong


def test_every_difference_has_a_case_and_a_reason():
    assert {name for name, *_ in CASES} == {one.name for one in DIFFERENCES}
    assert all(len(one.reason) > 40 for one in DIFFERENCES)


@pytest.mark.parametrize(
    ("line", "kafka", "differing"),
    [
        pytest.param(
            "replicas=1,2 dirs=ab isr=1,2 leader=1 | isr=1 alive=1,2",
            "leader=2 isr=1",
            ("leader",),
            id="another leader",
        ),
        pytest.param(
            "replicas=1,2 dirs=ab isr=1,2 leader=1 | isr=1 alive=1,2",
            "none",
            ("isr",),
            id="no record",
        ),
        pytest.param(
            "replicas=6,7 dirs=ab isr=6,7 removing=7 leader=7 | isr=6 alive=6 min=2 use-elr",
            "leader=6 isr=6 elr=7 replicas=6 removing= dirs=b",
            ("directories", "eligible_leader_replicas"),
            id="strangers in the ELR, and another field",
        ),
        pytest.param(
            "replicas=6,8,7 dirs=acb isr=6,7 elr=8 removing=7 leader=7 "
            "| isr=6 alive=6 min=3 use-elr lost=8",
            "leader=6 isr=6 elr=7,8 replicas=6,8 removing= dirs=ac",
            ("replicas", "removing_replicas", "directories", "eligible_leader_replicas"),
            id="strangers in the ELR, and the others differ, too",
        ),
    ],
)
def test_anything_else_is_wrong(line, kafka, differing):
    found = judged(line, kafka)
    assert found.wrong
    assert {*found.differing} == {*differing}
