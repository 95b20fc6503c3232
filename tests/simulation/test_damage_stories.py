"""Stories of damaged folders, told by hand: each claim of "corruption contained" has one.

The claims, in the words of the runbook: a node whose acknowledged data is damaged does not vote,
does not lead and does not count; nothing is truncated on its account; it fetches what it lacks and
says so; then it is a voter again. An entry that was acknowledged and is in no leader's log fails
the run by itself (I5), so a story that ends has shown that nothing was lost.
"""

from collections import deque

import pytest

from quorum.guard.memory import Memory
from quorum.inside import Inside
from quorum.journal.frames import Kind, find_frames
from quorum.journal.identity import read_opening
from quorum.node import ACCEPT_LOSS
from runtime.simulated.platter import Platter
from runtime.simulated.world import SimulationFailedError
from tests.simulation.patches import patched
from tests.simulation.quorum_cluster import QuorumCluster, Shape

pytestmark = pytest.mark.simulation


def cluster(seed: int = 5, nodes: int = 3, **shape: object) -> QuorumCluster:
    fields = {"nodes": nodes, "proposals_per_s": 30.0, "reads_per_s": 5.0} | shape
    made = QuorumCluster(seed, Shape(**fields))  # type: ignore[arg-type]
    made.start_all()
    assert made.world.run_for(3, lambda: made.serving() is not None)
    made.proposers.start()
    made.world.run_for(2)
    return made


def leader_of(made: QuorumCluster) -> int:
    leader = made.serving()
    assert leader is not None
    return leader


def followers_of(made: QuorumCluster) -> list[int]:
    return [n for n in made.hosts if n != leader_of(made)]


def role(made: QuorumCluster, node_id: int) -> str:
    return made.owners[node_id].quorum.status().role


def note(made: QuorumCluster, node_id: int) -> str:
    return made.owners[node_id].quorum.status().note


def settles(made: QuorumCluster, seconds: float = 20) -> None:
    """At rest, all hold the same, and whoever leads holds what was ever acknowledged."""
    made.busy = False
    assert made.world.run_for(seconds, made.caught_up), {n: role(made, n) for n in made.hosts}


def is_voter_again(made: QuorumCluster, node_id: int, seconds: float = 6) -> None:
    assert made.world.run_for(seconds, lambda: role(made, node_id) in ("follower", "leader"))


def frames(platter: Platter, kind: Kind) -> list[tuple[str, int]]:
    """Where the bodies of a kind of frame stand: file and offset."""
    found = []
    for name in sorted(n for n in platter.names if n.endswith(".wal")):
        data = bytes(platter.names[name].content)
        opening = read_opening(name, data)
        assert opening is not None
        seed = opening.identity.seed(opening.sequence)
        found += [(name, f.offset + 36) for f in find_frames(data, 0, seed) if f.kind == kind]
    return found


# -- one of three --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Kind.ENTRY, Kind.VOTE, Kind.STATE, Kind.FORMATION, Kind.LIFE])
def test_a_flipped_frame_silences_one_voter_until_the_others_have_repaired_it(kind: Kind) -> None:
    made = cluster()
    victim, third = followers_of(made)
    made.hosts[victim].kill()
    where = frames(made.hosts[victim].platter, kind)
    made.hosts[victim].platter.flip_bit(*where[len(where) // 2])
    made.start(victim)
    assert role(made, victim) == "damaged"
    # The third is away, so the damaged one would have to be counted: nothing is acknowledged.
    leader = leader_of(made)
    made.network.cut([third], [leader, victim])
    made.world.run_for(0.5)
    before = made.proposers.counts.acknowledged
    made.world.run_for(3)
    assert role(made, victim) == "damaged"
    assert made.proposers.counts.acknowledged == before
    # Nor does it elect anybody.
    made.hosts[leader].kill()
    made.network.heal()
    made.world.run_for(3)
    assert made.serving() is None
    assert role(made, victim) == "damaged"
    made.start(leader)
    is_voter_again(made, victim)
    settles(made)


def journal_files(platter: Platter) -> dict[str, int]:
    return {n: len(i.content) for n, i in platter.names.items() if n.endswith(".wal")}


@pytest.mark.parametrize("witness", [True, False])
def test_a_journal_that_lost_its_end(witness: bool) -> None:
    """It is as it was a second ago; even where nothing on the disk says that it was longer."""
    made = cluster()
    victim, _ = followers_of(made)
    platter = made.hosts[victim].platter
    before = journal_files(platter)
    made.world.run_for(1)
    made.hosts[victim].kill()
    for name, size in journal_files(platter).items():
        assert before.get(name) != size or len(before) > 1
        if name in before:
            platter.cut(name, before[name])
        else:
            platter.remove(name)
    if not witness:
        platter.remove("journal/synced")
    made.start(victim)
    assert (role(made, victim) == "damaged") is witness
    assert made.world.run_for(1, lambda: role(made, victim) == "damaged")
    is_voter_again(made, victim)
    settles(made)


def test_a_witness_that_rots_says_too_little_and_nothing_wrong() -> None:
    made = cluster()
    victim, _ = followers_of(made)
    made.hosts[victim].kill()
    platter = made.hosts[victim].platter
    for position in range(0, len(platter.names["journal/synced"].content), 3):
        platter.flip_bit("journal/synced", position)
    made.start(victim)
    made.world.run_for(0.6)
    assert role(made, victim) in ("follower", "leader")
    settles(made)


# -- a folder that is put back -------------------------------------------------------------------


def put_back(made: QuorumCluster, *, heard_by_the_third: bool = True) -> tuple[int, int, int]:
    """A voter's folder of seconds ago is put back, when only the leader beside it had its entries.

    Returns (leader, the voter, the third), the leader cut off.
    """
    leader = leader_of(made)
    victim, third = followers_of(made)
    copy = made.hosts[victim].platter.snapshot()
    made.network.cut([third], [leader] if heard_by_the_third else [leader, victim])
    before = made.proposers.counts.acknowledged
    made.world.run_for(2)
    assert made.proposers.counts.acknowledged > before + 50
    made.hosts[victim].kill()
    made.network.cut([leader], [victim, third])
    made.network.mend([victim], [third])
    made.hosts[victim].platter.restore(copy)
    return leader, victim, third


@pytest.mark.parametrize("seed", range(3))
def test_a_restored_folder_is_no_voice_for_a_leader_that_lacks_what_was_acknowledged(
    seed: int,
) -> None:
    made = cluster(seed)
    leader, victim, third = put_back(made)
    made.start(victim)
    made.world.run_for(5)
    assert role(made, victim) == "damaged"
    assert f"node {third} remembers this folder" in note(made, victim)
    assert made.serving() is None
    made.network.heal()
    is_voter_again(made, victim)
    settles(made)
    assert leader in made.hosts


def test_peers_remember_through_their_own_restarts() -> None:
    """Everything stops, a folder of before is put back, everything starts but the one that knew."""
    made = cluster()
    leader, victim, third = put_back(made)
    for node_id in (leader, third):
        made.hosts[node_id].kill()
    made.network.heal()
    made.start(third)
    made.start(victim)
    made.world.run_for(5)
    assert role(made, victim) == "damaged"
    assert made.serving() is None
    made.start(leader)
    is_voter_again(made, victim)
    settles(made)


def race_for_the_voice(seed: int) -> None:
    """The third lacks entries and is there at once; the leader stands still for a moment more."""
    made = cluster(seed)
    leader, victim, third = put_back(made, heard_by_the_third=False)
    made.network.mend([leader], [victim])
    made.hosts[leader].pause()
    made.start(victim)
    made.world.run_for(0.3)
    made.hosts[leader].resume()
    assert made.world.run_for(0.3, lambda: role(made, victim) == "damaged")
    made.world.run_for(2)
    assert made.serving() != third
    made.network.heal()
    is_voter_again(made, victim)
    settles(made)


@pytest.mark.parametrize("seed", range(3))
def test_a_restored_folder_waits_for_the_peer_that_remembers_it(seed: int) -> None:
    race_for_the_voice(seed)


def test_a_build_that_does_not_wait_is_caught() -> None:
    at_once = (Inside, "_is_compared", lambda _: True)
    with patched((at_once,)), pytest.raises(SimulationFailedError, match="I5"):
        deque((race_for_the_voice(seed) for seed in range(3)), 0)


def forget_a_vote(seed: int) -> None:
    """The copy is older than its vote for another; it would go on helping the leader of before."""
    made = cluster(seed)
    old = leader_of(made)
    victim, new = followers_of(made)
    copy = made.hosts[victim].platter.snapshot()
    made.world.run_for(0.5)
    made.network.cut([old], [victim, new])
    made.hosts[victim].process.run(lambda: made.owners[victim].quorum._elections.step_back(3, 4))
    assert made.world.run_for(4, lambda: made.serving() == new)
    made.world.run_for(0.5)
    made.network.cut([new], [old, victim])
    made.hosts[victim].kill()
    made.hosts[victim].platter.restore(copy)
    made.network.mend([old], [victim])
    made.world.run_for(2)
    made.start(victim)
    made.world.run_for(5)
    assert role(made, victim) == "damaged"
    made.network.heal()
    is_voter_again(made, victim)
    settles(made)


def test_a_vote_that_was_forgotten_is_not_cast_again() -> None:
    forget_a_vote(1)


def test_a_build_in_which_it_is_cast_again_is_caught() -> None:
    forgetful = (Memory, "_forgotten", lambda *_: None)
    with patched((forgetful,)), pytest.raises(SimulationFailedError, match=r"I\d"):
        forget_a_vote(1)


def test_a_folder_moved_back_and_forth_is_found_each_time() -> None:
    made = cluster()
    victim, _ = followers_of(made)
    copy = made.hosts[victim].platter.snapshot()
    for _ in range(3):
        made.world.run_for(1)
        made.hosts[victim].kill()
        made.hosts[victim].platter.restore(copy)
        made.start(victim)
        assert made.world.run_for(1, lambda: role(made, victim) == "damaged")
        is_voter_again(made, victim)
    settles(made)


def test_to_the_leader_no_acknowledgement_is_forgotten_however_late_the_copy_was_made() -> None:
    made = cluster()
    victim, _ = followers_of(made)
    for _ in range(5):
        copy = made.hosts[victim].platter.snapshot()
        before = made.owners[victim].last_delivered
        assert made.world.run_for(1, lambda b=before: made.owners[victim].last_delivered > b)  # type: ignore[misc]
        made.hosts[victim].kill()
        made.hosts[victim].platter.restore(copy)
        made.start(victim)
        assert made.world.run_for(1, lambda: role(made, victim) == "damaged")
        is_voter_again(made, victim)
    settles(made)


def test_restarts_and_losses_of_power_are_no_restored_folder() -> None:
    """Nobody is called damaged who only slept."""
    made = cluster(nodes=3)
    for number in range(6):
        victim = list(made.hosts)[number % 3]
        host = made.hosts[victim]
        host.lose_power() if number % 2 else host.kill()
        made.world.run_for(0.4)
        made.start(victim)
        for _ in range(20):
            made.world.run_for(0.05)
            assert "damaged" not in {role(made, n) for n in made.hosts}
    settles(made)


def test_what_is_not_promised_nobody_in_reach_remembers() -> None:
    """The third was away from both since the copy was made, and the leader is not to be had.

    Two of three folders are gone then, as far as anyone can tell, and the two that meet can't know.
    """
    made = cluster()
    _, victim, _ = put_back(made, heard_by_the_third=False)
    made.start(victim)
    with pytest.raises(SimulationFailedError, match="I5"):
        made.world.run_for(5)


def test_a_build_that_does_not_listen_to_what_peers_remember_is_caught() -> None:
    forgetful = (Memory, "_forgotten", lambda *_: None)
    made = cluster()
    with patched((forgetful,)):
        _, victim, _ = put_back(made)
        made.start(victim)
        with pytest.raises(SimulationFailedError, match="I5"):
            made.world.run_for(5)


# -- two and all of three ------------------------------------------------------------------------


def stop_all(made: QuorumCluster) -> None:
    made.world.run_for(0.5)
    for host in made.hosts.values():
        host.kill()


def test_with_two_damaged_nobody_leads_and_a_sound_copy_of_one_is_the_way_out() -> None:
    made = cluster()
    first, second = followers_of(made)
    stop_all(made)
    sound = made.hosts[first].platter.snapshot()
    for victim in (first, second):
        platter = made.hosts[victim].platter
        where = frames(platter, Kind.ENTRY)
        platter.flip_bit(*where[len(where) // 2])
    for node_id in made.hosts:
        made.start(node_id)
    made.world.run_for(10)
    assert made.serving() is None
    assert role(made, first) == role(made, second) == "damaged"
    # What the runbook says: the folder of one, from before.
    made.hosts[first].kill()
    made.hosts[first].platter.restore(sound)
    made.start(first)
    is_voter_again(made, second)
    settles(made)


def test_a_loss_that_was_repaired_is_not_held_against_it_by_who_forgot_the_repair() -> None:
    """Two lives went with it, of which the peers remembered the newest; one remembers less now."""
    made = cluster(tail_bytes=10_000_000)
    leader, (victim, third) = leader_of(made), followers_of(made)
    platter = made.hosts[victim].platter
    flipped = ("", 0)
    for _ in range(2):
        made.hosts[victim].kill()
        made.start(victim)
        made.world.run_for(2)
        flipped = flipped if flipped[0] else frames(made.hosts[leader].platter, Kind.ENTRY)[-1]
    made.hosts[victim].kill()
    platter.flip_bit(*frames(platter, Kind.LIFE)[-2])
    made.start(victim)
    assert role(made, victim) == "damaged"
    is_voter_again(made, victim)
    assert leader_of(made) == leader
    stop_all(made)
    made.hosts[leader].platter.flip_bit(*flipped)
    for node_id in (leader, victim):
        made.start(node_id)
    made.world.run_for(2)
    assert role(made, leader) == "damaged"
    assert role(made, victim) == "follower", note(made, victim)
    made.start(third)
    is_voter_again(made, leader)
    settles(made)


def test_all_put_back_to_one_moment_go_on_from_there() -> None:
    """The way out where a majority is lost: nobody is left who remembers more."""
    made = cluster()
    stop_all(made)
    copies = {n: host.platter.snapshot() for n, host in made.hosts.items()}
    again = QuorumCluster(6, Shape())
    for node_id, host in again.hosts.items():
        host.platter.restore(copies[node_id])
    again.start_all()
    assert again.world.run_for(3, lambda: again.serving() is not None)
    again.proposers.next = made.proposers.next
    again.proposers.start()
    again.world.run_for(2)
    assert "damaged" not in {role(again, n) for n in again.hosts}
    settles(again)


def copies_one_after_another(made: QuorumCluster) -> dict[int, dict[str, bytes]]:
    """What backups of a running cluster are: each of another moment."""
    copies = {}
    for node_id, host in made.hosts.items():
        copies[node_id] = host.platter.snapshot()
        made.world.run_for(1)
    return copies


@pytest.mark.parametrize("accepted", [False, True])
def test_folders_of_several_moments_go_on_when_somebody_accepts_the_loss(accepted: bool) -> None:
    made = cluster()
    copies = copies_one_after_another(made)
    again = QuorumCluster(6, Shape())
    for node_id, host in again.hosts.items():
        host.platter.restore(copies[node_id])
        if accepted:
            host.platter.put(ACCEPT_LOSS, b"")
    again.start_all()
    again.world.run_for(5)
    if not accepted:
        # The newest remembers the others further than they are.
        assert [role(again, n) for n in again.hosts][:2] == ["damaged", "damaged"]
        assert again.serving() is None
        return
    assert not any(ACCEPT_LOSS in host.platter.names for host in again.hosts.values())
    assert again.serving() is not None
    again.proposers.next = made.proposers.next
    again.proposers.start()
    again.world.run_for(2)
    settles(again)
    # And it is done with: from now on they remember each other again.
    victim = next(n for n in again.hosts if n != again.serving())
    again.hosts[victim].kill()
    again.hosts[victim].platter.restore(copies[victim])
    again.start(victim)
    assert again.world.run_for(1, lambda: role(again, victim) == "damaged")


def test_all_three_damaged_in_different_places_lose_nothing_and_say_so() -> None:
    """Nobody may vote, so nothing is cut; every byte stays for whoever puts it together."""
    made = cluster()
    stop_all(made)
    before = {n: host.platter.snapshot() for n, host in made.hosts.items()}
    flipped = {}
    for number, host in made.hosts.items():
        where = frames(host.platter, Kind.ENTRY)
        flipped[number] = where[number * len(where) // 5]
        host.platter.flip_bit(*flipped[number])
    for node_id in made.hosts:
        made.start(node_id)
    made.world.run_for(10)
    assert {role(made, n) for n in made.hosts} == {"damaged"}
    assert made.serving() is None
    for number, host in made.hosts.items():
        name, position = flipped[number]
        assert name in note(made, number)
        data = bytearray(host.platter.names[name + ".damaged"].content)
        data[position] ^= 1
        assert data == before[number][name]
        # Put back as it was, it is what it was.
        host.kill()
        host.platter.restore(before[number])
        made.start(number)
    made.world.run_for(2)
    settles(made)
