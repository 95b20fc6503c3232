"""Nodes of two generations never talk to each other, and each says what to do."""

import pytest

from quorum.api import FIRST_GENERATION, ClusterGeneration
from quorum.membership.formation import decode_formation, encode_formation, generation_of
from quorum.wire.codec import BadBytesError, dumps
from quorum.wire.frames import FrameKind
from tests.unit.quorum.bench import CLUSTER, DIRECTORIES, Bench

SECOND = ClusterGeneration(2, b"a" * 16)


def test_a_formation_keeps_its_generation() -> None:
    pinned = {1: b"x" * 16}
    encoded = encode_formation(CLUSTER, pinned, SECOND)
    assert decode_formation(encoded, CLUSTER) == pinned
    assert generation_of(encoded) == SECOND


def test_a_first_formation_is_written_as_every_release_wrote_it() -> None:
    encoded = encode_formation(CLUSTER, {1: b"x" * 16})
    assert encoded == dumps((CLUSTER, ((1, b"x" * 16),)))
    assert generation_of(encoded) == FIRST_GENERATION


BAD = [
    (2, b"short"),
    (1, b"a" * 16),
    (-1, b"a" * 16),
    (2**31, b"a" * 16),
    ("2", b"a" * 16),
    (2, "a" * 16),
    (2,),
    (2, b"a" * 16, 3),
    2,
]


@pytest.mark.parametrize("generation", BAD)
def test_a_generation_that_is_none_is_refused(generation: object) -> None:
    data = dumps((CLUSTER, ((1, b"x" * 16),), generation))
    assert generation_of(data) is None
    with pytest.raises(BadBytesError):
        decode_formation(data, CLUSTER)


def formation(bench: Bench, generation: ClusterGeneration) -> bytes:
    """The bench's own voters, in another generation."""
    own = bench.node.context.formation.pinned
    return encode_formation(CLUSTER, own, generation)


def refusal(bench: Bench, theirs: bytes) -> str:
    bench.unlink(2)
    return str(bench.link(2, empty=False, formation=theirs))


def of_second_generation(bench: Bench) -> None:
    """Let the bench's node be of the second generation, with the same voters."""
    own = bench.node.context.formation
    own.encoded = formation(bench, SECOND)
    bench.node.context.journal.set_formation(own.encoded)


def test_a_node_of_an_earlier_generation_is_refused_and_told_what_to_do() -> None:
    bench = Bench()
    of_second_generation(bench)
    said = refusal(bench, formation(bench, FIRST_GENERATION))
    assert "node 2 is of generation 1 of the cluster, and this node of generation 2" in said
    assert "start it with an empty one" in said
    bench.say(3, FrameKind.FORMATION, 0, formation(bench, FIRST_GENERATION))
    bench.append(3, 5, 1, 1, 0)
    assert bench.term == 0, "nor on a link that was there before"


def test_a_node_of_a_later_generation_says_that_this_folder_may_not_come_back() -> None:
    bench = Bench()
    said = refusal(bench, formation(bench, SECOND))
    assert "the cluster was recovered: node 2 is of its generation 2" in said
    assert "stop this node, move its folder away" in said


def test_two_recoveries_of_one_number_refuse_each_other() -> None:
    bench = Bench()
    of_second_generation(bench)
    said = refusal(bench, formation(bench, ClusterGeneration(2, b"b" * 16)))
    assert "it was recovered twice" in said


def test_the_same_generation_with_other_voters_is_refused_as_before() -> None:
    bench = Bench()
    other = encode_formation(CLUSTER, {1: b"o" * 16, 2: DIRECTORIES[2]})
    assert "formed with other voters" in refusal(bench, other)


def test_an_empty_node_follows_the_generation_that_it_meets() -> None:
    bench = Bench(formed=False)
    theirs = encode_formation(CLUSTER, {2: DIRECTORIES[2]}, SECOND)
    bench.link(2, empty=False, formation=theirs)
    assert bench.role == "observer"
    assert bench.node.context.formation.generation == SECOND
    said = str(bench.link(3, empty=False, formation=encode_formation(CLUSTER, {3: b"x" * 16})))
    assert "is of generation 1" in said
