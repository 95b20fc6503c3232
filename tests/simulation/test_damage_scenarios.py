"""Scenarios of damaged folders: one for each claim about contained corruption.

The claims, in the words of the runbook: a node whose acknowledged data is damaged does not vote,
does not lead and is not counted; no other node truncates because of it; it fetches what it lacks
and reports that; then it is a voter again.
"""

import pytest

from quorum.journal.frames import JournalFrameKind
from runtime.simulated.platter import Platter
from tests.simulation.quorum_scenario import (
    cluster,
    flip,
    followers_of,
    frames,
    is_voter_again,
    leader_of,
    note,
    role,
    settles,
    stop_all,
)

pytestmark = pytest.mark.simulation

# -- one of three --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind",
    [
        JournalFrameKind.ENTRY,
        JournalFrameKind.VOTE,
        JournalFrameKind.STATE,
        JournalFrameKind.FORMATION,
        JournalFrameKind.INCARNATION,
    ],
)
def test_a_flipped_frame_silences_one_voter_until_the_others_have_repaired_it(
    kind: JournalFrameKind,
) -> None:
    made = cluster()
    victim, third = followers_of(made)
    made.hosts[victim].kill()
    flip(made.hosts[victim].platter, kind)
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


@pytest.mark.parametrize("notes", [True, False])
def test_a_journal_that_lost_its_end(notes: bool) -> None:
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
    if not notes:
        platter.remove("journal/synced")
    made.start(victim)
    assert (role(made, victim) == "damaged") is notes
    assert made.world.run_for(1, lambda: role(made, victim) == "damaged")
    is_voter_again(made, victim)
    settles(made)


def test_synced_notes_that_rot_say_too_little_and_nothing_wrong() -> None:
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


# -- two and all of three ------------------------------------------------------------------------


def test_with_two_damaged_nobody_leads_and_a_sound_copy_of_one_is_the_way_out() -> None:
    made = cluster()
    first, second = followers_of(made)
    stop_all(made)
    sound = made.hosts[first].platter.snapshot()
    for victim in (first, second):
        platter = made.hosts[victim].platter
        flip(platter)
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
        flipped = (
            flipped
            if flipped[0]
            else frames(made.hosts[leader].platter, JournalFrameKind.ENTRY)[-1]
        )
    made.hosts[victim].kill()
    platter.flip_bit(*frames(platter, JournalFrameKind.INCARNATION)[-2])
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


def test_all_three_damaged_in_different_places_lose_nothing_and_say_so() -> None:
    """No node may vote, so nothing is cut: an operator can still use every byte."""
    made = cluster()
    stop_all(made)
    before = {n: host.platter.snapshot() for n, host in made.hosts.items()}
    flipped = {}
    for number, host in made.hosts.items():
        where = frames(host.platter, JournalFrameKind.ENTRY)
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
