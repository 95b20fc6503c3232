"""What the guard relies on in PySyncObj, one test for each behaviour.

If a new release fails here, read its source before changing a test.
"""

import random
from typing import cast

import pysyncobj.syncobj as core_module
import pytest

from quorum.config import QuorumConfig
from quorum.journal import Entry
from quorum.journal.manifest_store import ManifestStore
from quorum.raft import core_world
from quorum.raft.core import Core, Role
from quorum.raft.core_node import CoreNode
from quorum.raft.core_world import WrongCoreError, check_core
from quorum.raft.dicts import WORDS
from quorum.raft.messages import (
    AppendEntries,
    AppendReply,
    Forward,
    FromCore,
    Heartbeat,
    InstallSnapshot,
    RequestVote,
    VoteGranted,
)
from runtime.links.interface import Peer
from tests.unit.quorum.journal.rig import Rig

ME, B, C = (CoreNode(n, bytes([n]) * 16) for n in (1, 2, 3))
CONFIG = QuorumConfig(cluster_id="c", node_id=1, peers=(Peer(1, "h", 1),))


class NoManifest:
    """A store that never had anything."""

    current = None
    writing = False

    def take_report(self) -> None:
        return None


class Bench:
    """A core with nothing around it but a clock that we turn."""

    def __init__(self, others: tuple[CoreNode, ...] = (B, C)) -> None:
        self.now = 10.0
        self.journal = Rig().open()
        self.sent: list[tuple[CoreNode, FromCore]] = []
        self.applied: list[tuple[bytes, ...]] = []
        self.roles: list[tuple[Role, int]] = []
        self._dice = random.Random(1)
        self.core = Core(
            CONFIG,
            world=self,
            manifests=cast("ManifestStore", NoManifest()),
            self_node=ME,
            others=others,
            on_send=self._send,
            on_apply=self.applied.append,
            on_role=lambda _, new: self.roles.append((new, len(self.journal))),
            on_left=lambda: None,
        )
        self.core.tick()

    def monotonic(self) -> float:
        return self.now

    def dice(self) -> float:
        return self._dice.random()

    def _send(self, node: CoreNode, message: FromCore) -> bool:
        self.sent.append((node, message))
        return True

    def hear(self, term: int, commit: int = 1) -> None:
        self.core.receive(B, Heartbeat(term, commit))

    def append(self, entries: list[Entry]) -> None:
        self.core.receive(B, AppendEntries(1, 1, previous=1, previous_term=0, entries=entries))

    def lead(self) -> None:
        self.core.stand(B)
        self.core.receive(B, VoteGranted(self.core.term))
        assert self.core.role is Role.LEADER


def test_the_installed_release_is_the_one_that_was_proved() -> None:
    check_core()


def test_another_release_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core_world, "VERSION", "0.3.18")
    with pytest.raises(WrongCoreError, match=r"install pysyncobj==0\.3\.17"):
        check_core()


def test_a_release_that_speaks_other_messages_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core_world, "WORDS", WORDS | {"install_snapshot"})
    with pytest.raises(WrongCoreError, match="install_snapshot"):
        check_core()


def test_every_replaced_global_is_looked_up_in_the_module() -> None:
    used = set(core_module.SyncObj.__init__.__code__.co_names)
    for method in vars(core_module.SyncObj).values():
        used |= set(getattr(getattr(method, "__code__", None), "co_names", ()))
    replaced = {"monotonicTime", "random", "os", "createJournal", "Serializer", "pickle"}
    assert replaced | {"createPoller", "PIPE_NOTIFIER_ENABLED"} <= used


def test_the_clock_and_the_dice_are_the_nodes_own() -> None:
    bench = Bench()
    bench.now += 1000
    bench.core.connect(B, voter=True)
    bench.core.tick()
    assert bench.core.role is Role.CANDIDATE


def test_the_core_opens_no_descriptor() -> None:
    assert core_module.PIPE_NOTIFIER_ENABLED is False
    assert core_module.os is not __import__("os")


def test_a_node_connected_to_nobody_starts_no_election() -> None:
    bench = Bench()
    bench.now += 1000
    bench.core.tick()
    assert bench.core.role is Role.FOLLOWER
    assert bench.core.term == 0
    assert not bench.sent


def test_timeout_now_from_the_last_known_leader_stands_at_once() -> None:
    bench = Bench()
    bench.hear(3)
    bench.core.stand(B)
    assert bench.core.role is Role.CANDIDATE
    assert bench.core.term == 4
    votes = {node: message for node, message in bench.sent if isinstance(message, RequestVote)}
    assert votes == dict.fromkeys((B, C), RequestVote(4, last_index=1, last_term=0))


def test_a_candidate_that_is_disconnected_again_does_not_stand_twice() -> None:
    bench = Bench()
    bench.core.stand(B)
    bench.now += 1000
    bench.core.tick()
    assert bench.core.term == 1


def test_the_noop_follows_the_change_of_state() -> None:
    bench = Bench()
    bench.lead()
    (_, _), (role, entries) = bench.roles
    assert role is Role.LEADER
    assert entries == 1
    assert bench.journal[-1] == (b"\1", 2, 1)


def test_an_append_without_prev_touches_no_log_and_resets_the_election() -> None:
    bench = Bench()
    bench.append([(b"\1", 2, 1), (b"\1", 3, 1)])
    bench.now += 0.4
    bench.core.connect(C, voter=True)
    bench.hear(1, commit=2)
    bench.now += 0.4
    bench.core.tick()
    assert bench.core.role is Role.FOLLOWER
    assert len(bench.journal) == 3
    assert bench.core.commit_index == 2


def test_an_append_with_prev_truncates_even_what_agrees() -> None:
    """The hole that `guard.appends` closes; when it goes, that can become simpler."""
    bench = Bench()
    bench.append([(b"\1", 2, 1), (b"\1", 3, 1)])
    bench.append([(b"\1", 2, 1)])
    assert len(bench.journal) == 2


def test_an_accepted_append_is_answered_with_the_index_behind_it() -> None:
    bench = Bench()
    bench.append([(b"\1", 2, 1)])
    assert bench.sent[-1] == (B, AppendReply(next_index=3, success=True, reset=False))


def test_a_vote_request_of_term_minus_one_raises_the_term_and_grants_nothing() -> None:
    bench = Bench()
    bench.core.raise_term(9, C)
    assert bench.core.term == 9
    assert bench.journal.voted_for is None
    assert not bench.sent


def test_the_same_makes_a_leader_step_down() -> None:
    bench = Bench()
    bench.lead()
    bench.core.raise_term(9, C)
    assert bench.core.role is Role.FOLLOWER
    assert bench.core.leader is None


def test_term_and_vote_are_written_before_the_vote_is_sent() -> None:
    bench = Bench()
    seen: list[tuple[int, object]] = []
    bench.core._transport._on_send = lambda node, message: seen.append(
        (bench.journal.term, bench.journal.voted_for)
    )
    bench.core.receive(C, RequestVote(5, last_index=1, last_term=0))
    assert seen == [(5, C.id)]


def test_votes_are_counted_and_not_attributed() -> None:
    """The hole that `Elections.first_vote_of` closes."""
    five = (B, C, CoreNode(4, b"4" * 16), CoreNode(5, b"5" * 16))
    bench = Bench(five)
    bench.core.stand(B)
    for _ in range(2):
        bench.core.receive(B, VoteGranted(1))
    assert bench.core.role is Role.LEADER


def test_a_success_moves_the_match_and_where_sending_goes_on() -> None:
    bench = Bench()
    bench.lead()
    bench.core.connect(B, voter=True)
    answer = AppendReply(next_index=3, success=True, reset=False)
    bench.core.receive(B, answer)
    bench.core.tick()
    assert bench.core.commit_index == 2


def test_a_reset_moves_only_where_sending_goes_on() -> None:
    bench = Bench()
    bench.lead()
    bench.core.connect(B, voter=True)
    answer = AppendReply(next_index=2, success=False, reset=True)
    bench.core.receive(B, answer)
    bench.sent.clear()
    bench.now += 1
    bench.core.receive(B, answer)
    bench.core.tick()
    appends = [m for n, m in bench.sent if isinstance(m, AppendEntries) and n == B]
    assert bench.core.commit_index == 1
    assert [entry[1] for entry in appends[0].entries] == [2]


def test_a_node_disconnected_while_it_is_sent_to_is_sent_no_more() -> None:
    bench = Bench()
    bench.lead()
    bench.core.connect(B, voter=True)
    bench.sent.clear()

    def refuse(node: CoreNode, message: FromCore) -> bool:
        bench.sent.append((node, message))
        bench.core.disconnect(node, voter=True)
        return False

    bench.core._transport._on_send = refuse
    bench.core.append([b"x"])
    bench.core.tick()
    assert len(bench.sent) == 1


def test_an_isolated_leader_steps_down_after_the_fallback_timeout() -> None:
    bench = Bench()
    bench.lead()
    bench.now += CONFIG.election_timeout_s + 0.01
    bench.core.tick()
    assert bench.core.role is Role.FOLLOWER


def test_an_entry_is_handed_out_with_last_applied_still_before_it() -> None:
    bench = Bench(others=())
    indexes: list[int] = []
    bench.core._machine._on_apply = lambda _: indexes.append(bench.core.last_applied)
    bench.core.stand(None)
    bench.core.append([b"a", b"b"])
    for _ in range(3):
        bench.core.tick()
    assert indexes == [2]
    assert bench.core.last_applied == 3


def test_a_command_is_a_type_byte_and_the_codecs_call() -> None:
    bench = Bench(others=())
    bench.core.stand(None)
    bench.core.append([b"a", b"b"])
    for _ in range(3):
        bench.core.tick()
    assert bench.applied == [(b"a", b"b")]
    assert bench.journal[-1][0][:1] == b"\0"


def test_the_core_never_compacts_on_its_own() -> None:
    bench = Bench(others=())
    bench.core.stand(None)
    for _ in range(50):
        bench.core.append([b"a"])
        bench.now += 100_000
        bench.core.tick()
        bench.core.tick()
    assert len(bench.journal) >= 50


def test_nodes_hash_as_numbers_and_differ_by_directory() -> None:
    assert hash(CoreNode(7, b"a" * 16)) == 7
    assert CoreNode(7, b"a" * 16) != CoreNode(7, b"b" * 16)
    assert CoreNode(7, b"a" * 16) == CoreNode(7, b"a" * 16)
    assert CoreNode(7, b"\1" * 16).id == "7@" + "01" * 16


def test_a_follower_forwards_a_command_and_the_guard_sees_only_that() -> None:
    bench = Bench()
    bench.hear(1)
    bench.core.append([b"a"])
    bench.core.tick()
    assert bench.sent[-1] == (B, Forward())


def test_a_leader_without_a_manifest_sends_an_empty_one_to_who_needs_the_first_entry() -> None:
    bench = Bench()
    bench.lead()
    bench.core.connect(B, voter=True)
    bench.core.receive(B, AppendReply(next_index=1, success=False, reset=True))
    bench.now += 0.2
    bench.core.tick()
    [(_, message)] = [item for item in bench.sent if isinstance(item[1], InstallSnapshot)]
    assert message == InstallSnapshot(term=1, commit_index=1, manifest=b"")


# Other voters (ADR 0081).

D = CoreNode(4, bytes([4]) * 16)


def acks(bench: Bench, node: CoreNode, index: int) -> None:
    """Let the core count that a node holds everything up to an index."""
    bench.core.receive(node, AppendReply(index + 1, success=True, reset=False))
    bench.core.tick()


def test_a_new_voter_is_counted_from_then_on() -> None:
    bench = Bench(others=(B,))
    bench.lead()
    bench.core.set_others([B, D])
    last = bench.journal.last_index
    bench.core.tick()
    assert bench.core.commit_index == 1, "one of three is no majority"
    acks(bench, D, last)
    assert bench.core.commit_index == last


def test_a_lone_leader_commits_no_more_by_itself_once_it_has_a_second_voter() -> None:
    bench = Bench(others=())
    bench.core.stand(None)
    assert bench.core.role is Role.LEADER
    bench.core.tick()
    bench.core.set_others([B])
    bench.core.append([b"x"])
    bench.core.tick()
    last = bench.journal.last_index
    assert bench.core.commit_index < last
    acks(bench, B, last)
    assert bench.core.commit_index == last


def test_a_voter_that_is_gone_is_counted_no_more_and_those_that_stay_keep_what_they_hold() -> None:
    bench = Bench(others=(B, C, D))
    bench.core.stand(B)
    for node in (B, C):
        bench.core.receive(node, VoteGranted(bench.core.term))
    assert bench.core.role is Role.LEADER
    last = bench.journal.last_index
    acks(bench, B, last)
    assert bench.core.commit_index == 1, "two of four are no majority"
    bench.core.set_others([B, C])
    bench.core.tick()
    assert bench.core.commit_index == last


def test_check_quorum_waits_for_a_new_voter_as_for_the_others() -> None:
    """The core keeps a time for each voter, and fails if one is missing."""
    bench = Bench(others=(B,))
    bench.lead()
    bench.core.set_others([B, D])
    bench.now += CONFIG.election_timeout_s / 2
    bench.core.on_timer()
    assert bench.core.role is Role.LEADER
    bench.now += CONFIG.election_timeout_s
    bench.core.on_timer()
    assert bench.core.role is Role.FOLLOWER


def test_an_entry_with_voters_hands_out_its_payloads() -> None:
    """The second method of the machine has number 1, and the first keeps number 0."""
    bench = Bench(others=())
    bench.core.stand(None)
    bench.core.append([b"before"])
    bench.core.tick()
    bench.core.append_voters(b"anything", [b"payload"])
    bench.core.tick()
    bench.core.tick()
    assert bench.applied == [(b"before",), (b"payload",)]
    commands = [command for command, _, _ in bench.journal[:]]
    assert commands[-1].startswith(b"\0\x92\1")


def test_a_release_that_cannot_replace_its_nodes_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(core_module.SyncObj, "_SyncObj__updateClusterConfiguration")
    with pytest.raises(WrongCoreError, match="replace the nodes"):
        check_core()
