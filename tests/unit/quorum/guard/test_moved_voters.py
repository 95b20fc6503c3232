"""One node whose voters move to other addresses: who is counted stays, and who is dialled where."""

import pytest

from quorum.api import Mark, Voter, VoterChangeRefusedError
from runtime.links.interface import Peer
from tests.unit.quorum.bench import DIRECTORIES, Bench
from tests.unit.quorum.guard.test_voter_changes import PAYLOAD, of_three, refused, voters


def at(bench: Bench, number: int, place: str) -> tuple[Voter, ...]:
    """Nodes 1, 2 and 3, one of them elsewhere."""
    return tuple(
        Voter(v.node_id, v.directory_id, place, 9094) if v.node_id == number else v
        for v in voters(bench, 2, 3)
    )


def test_one_voter_moves_at_a_time_and_counts_as_before() -> None:
    bench = of_three()
    one, two, _ = at(bench, 2, "elsewhere")
    assert "one voter moves at a time, not 2" in refused(bench, (one, two, at(bench, 3, "x")[2]))
    bench.call(bench.node.change_voters, at(bench, 2, "elsewhere"), PAYLOAD)
    bench.synced()
    assert bench.node.voters()[1] == Voter(2, DIRECTORIES[2], "elsewhere", 9094)
    assert bench.node.voter_set().moved == {2}
    assert bench.node.context.core.commit_index == 2
    with pytest.raises(VoterChangeRefusedError, match="entry 3 is not committed yet"):
        bench.node.change_voters(at(bench, 2, "back"), PAYLOAD)
    bench.ack(2)
    assert bench.heard.payloads() == [PAYLOAD]


def test_a_moved_voter_is_dialled_at_its_new_address_once_its_link_has_ended() -> None:
    bench = of_three()
    bench.call(bench.node.change_voters, at(bench, 2, "elsewhere"), PAYLOAD)
    bench.synced()
    bench.ack(2)
    bench.settle(0.2)
    assert Peer(2, "node-2", 9093) in bench.links.peers, "an open link stays"
    bench.unlink(2)
    bench.settle(0.1)
    assert Peer(2, "elsewhere", 9094) in bench.links.peers
    # Nobody answers there: the configured address has its turn, and then the other one again.
    bench.settle(2.1)
    assert Peer(2, "node-2", 9093) in bench.links.peers
    bench.settle(2.1)
    assert Peer(2, "elsewhere", 9094) in bench.links.peers


def test_a_moved_voter_is_found_after_a_restart() -> None:
    bench = of_three()
    bench.call(bench.node.change_voters, at(bench, 2, "elsewhere"), PAYLOAD)
    bench.synced()
    restarted(bench)


def test_a_moved_voter_is_found_after_a_compaction() -> None:
    """The entry with the move is gone then, and the members are those of the first start."""
    bench = Bench(3, tail_bytes=0)
    bench.lead()
    bench.call(bench.node.change_voters, at(bench, 2, "elsewhere"), PAYLOAD)
    bench.synced()
    for number in range(4):
        bench.ack(2)
        bench.call(bench.node.propose, b"%d" % number)
        bench.synced()
    bench.ack(2)
    done: list[bool] = []
    mark = Mark(bench.node.context.view.last, bench.term, b"m")
    bench.call(bench.node.compact, mark, done.append)
    bench.settle(0.5)
    assert done == [True]
    assert bench.node.context.view.first > 3
    restarted(bench)


def restarted(bench: Bench) -> None:
    bench.host.lose_power()
    bench.boot()
    assert bench.node.voters()[1].host == "elsewhere"
    assert Peer(2, "elsewhere", 9094) in bench.links.peers
