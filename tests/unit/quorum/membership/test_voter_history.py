"""The voters that follow from formation, manifest and journal, at each index."""

import pytest

from quorum.api import Voter
from quorum.config import QuorumConfig
from quorum.journal import DamagedError, RaftJournal
from quorum.journal.manifest import JournalManifest, decode_manifest, encode_manifest
from quorum.membership.formation import Formation, encode_formation
from quorum.membership.voter_addresses import addressed
from quorum.membership.voter_history import VoterHistory
from quorum.membership.voters_entry import (
    VOTERS_MAX,
    decode_voters,
    encode_voters,
    voters_of,
)
from quorum.wire.codec import BadBytesError, dumps
from runtime.links.interface import Peer
from tests.unit.quorum.journal.rig import Rig

CONFIG = QuorumConfig(
    cluster_id="simulated", node_id=1, peers=tuple(Peer(n, f"h{n}", 9) for n in (1, 2, 3))
)


def voter(number: int, letter: int = 0) -> Voter:
    return Voter(number, bytes([letter or number]) * 16, f"h{number}", 9)


def command(*voters: Voter) -> bytes:
    return b"\0" + dumps((1, (encode_voters(voters), (b"payload",))))


class Log:
    """A journal that was formed by nodes 1, 2 and 3, and its history."""

    def __init__(self) -> None:
        self.rig = Rig()
        self.journal = self.rig.open()
        me = self.journal.directory_id
        self.first = (Voter(1, me, "h1", 9), voter(2), voter(3))
        pinned = {v.node_id: v.directory_id for v in self.first}
        self.journal.set_formation(encode_formation(CONFIG.cluster_id, pinned))
        self.history = self.read(self.journal)
        self.journal.add(b"\1", 1, 0)

    def read(self, journal: RaftJournal, manifest: JournalManifest | None = None) -> VoterHistory:
        return VoterHistory(CONFIG, journal, Formation(CONFIG, journal), manifest)

    def add(self, *voters: Voter, term: int = 1) -> int:
        index = self.journal.last_index + 1
        self.journal.add(command(*voters) if voters else b"\0\x92\0\x90", index, term)
        return index

    @property
    def nodes(self) -> list[int]:
        return sorted(self.history.members)


@pytest.fixture
def log() -> Log:
    return Log()


def test_without_a_change_the_formation_is_in_force(log: Log) -> None:
    log.add()
    assert log.nodes == [1, 2, 3]
    assert log.history.we_vote
    assert log.history.majority() == 2
    assert not log.history.have_changed
    assert not log.history.changed
    assert log.history.at(10**9).index == 0


def test_a_set_is_in_force_when_it_is_appended_and_undone_when_it_is_cut(log: Log) -> None:
    four = log.add(*log.first, voter(4))
    assert log.nodes == [1, 2, 3, 4]
    assert log.history.majority() == 3
    assert log.history.changed
    log.add()
    log.journal.delete_from(four - log.journal.first_index)
    assert log.nodes == [1, 2, 3]
    assert not log.history.have_changed


def test_cutting_behind_a_change_undoes_nothing(log: Log) -> None:
    log.add(*log.first, voter(4))
    log.history.changed = False
    log.add()
    log.journal.delete_from(len(log.journal) - 1)
    assert log.nodes == [1, 2, 3, 4]
    assert not log.history.changed


def test_another_directory_is_another_voter(log: Log) -> None:
    log.add(*log.first[:2])
    log.add(*log.first[:2], voter(3, letter=9))
    assert log.history.votes(3, bytes([9]) * 16)
    assert not log.history.votes(3, bytes([3]) * 16)


def test_each_index_has_its_voters(log: Log) -> None:
    four = log.add(*log.first, voter(4))
    log.add()
    two = log.add(*log.first[:2])
    by_index = {index: sorted(log.history.at(index).members) for index in range(1, two + 2)}
    assert by_index == {
        1: [1, 2, 3],
        four: [1, 2, 3, 4],
        four + 1: [1, 2, 3, 4],
        two: [1, 2],
        two + 1: [1, 2],
    }
    assert [one.index for one in log.history.unsettled(four)] == [four, two]
    assert [one.index for one in log.history.unsettled(two)] == [two]


def test_a_removal_that_is_not_committed_is_known(log: Log) -> None:
    removed = log.add(*log.first[:2])
    assert log.history.is_leaving(3, bytes([3]) * 16, removed - 1)
    assert not log.history.is_leaving(3, bytes([3]) * 16, removed)
    assert not log.history.is_leaving(3, bytes([9]) * 16, removed - 1)
    assert not log.history.is_leaving(2, bytes([2]) * 16, removed - 1)


def test_a_restart_finds_the_same_voters(log: Log) -> None:
    log.add(*log.first, voter(4))
    log.add(*log.first)
    log.add(*log.first, voter(5))
    log.journal.sync()
    log.rig.settle()
    log.rig.lose_power()
    history = log.read(log.rig.open())
    assert sorted(history.members) == [1, 2, 3, 5]
    assert not history.changed


def test_a_manifest_is_the_base_and_the_entries_behind_it_count(log: Log) -> None:
    log.add(*log.first, voter(4))
    at = log.add()
    five = log.add(*log.first, voter(4), voter(5))
    first, second = log.journal.entry(at - 1), log.journal.entry(at)
    assert first is not None
    assert second is not None
    voters = log.history.at(at).voters
    manifest = JournalManifest(CONFIG.cluster_id, first, second, b"", voters)
    history = log.read(log.journal, manifest)
    assert sorted(history.at(at).members) == [1, 2, 3, 4]
    assert [one.index for one in history.unsettled(at)] == [at, five]
    log.journal.delete_from(five - log.journal.first_index)
    assert sorted(history.members) == [1, 2, 3, 4]
    assert history.have_changed, "the formation named three"


def test_a_manifest_says_whether_an_entry_named_its_voters(log: Log) -> None:
    entries = (b"\0\x92\0\x90", 70, 3), (b"\0\x92\0\x90", 71, 3)
    away = (log.first[0], Voter(2, bytes([2]) * 16, "elsewhere", 9), log.first[2])
    for named in (False, True):
        manifest = JournalManifest(CONFIG.cluster_id, *entries, b"", away, named=named)
        history = log.read(log.journal, decode_manifest(encode_manifest(manifest)))
        assert history.newest.named == history.have_changed == named
        place = addressed(history.newest, CONFIG.peers)[1].host
        assert place == ("elsewhere" if named else "h2")


def test_forgotten_entries_leave_their_voters_behind(log: Log) -> None:
    log.add(*log.first, voter(4))
    at = log.add()
    log.journal.delete_before(at - log.journal.first_index)
    assert log.nodes == [1, 2, 3, 4]
    last = log.add(*log.first)
    log.journal.delete_from(last - log.journal.first_index)
    assert log.nodes == [1, 2, 3, 4]


def test_a_jump_brings_the_voters_of_its_manifest(log: Log) -> None:
    log.add(*log.first, voter(4))
    log.history.changed = False
    entries = (b"\0\x92\0\x90", 70, 3), (b"\0\x92\0\x90", 71, 3)
    manifest = JournalManifest(CONFIG.cluster_id, *entries, b"", (log.first[0], voter(7)))
    log.history.begins_next_at(manifest)
    log.journal.clear()
    for entry in entries:
        log.journal.add(*entry)
    assert log.nodes == [1, 7]
    assert log.history.changed
    assert log.history.newest.index == 71


def test_an_observer_that_was_not_formed_with_us_knows_no_voters_before_it_learns_them() -> None:
    rig = Rig()
    journal = rig.open()
    entries = (b"\0\x92\0\x90", 70, 3), (b"\0\x92\0\x90", 71, 3)
    manifest = JournalManifest(CONFIG.cluster_id, *entries, b"", (voter(2), voter(3)))
    formation = Formation(CONFIG, journal)
    history = VoterHistory(CONFIG, journal, formation, manifest)
    assert not history.known
    pinned = {n: bytes([n]) * 16 for n in (2, 3)}
    assert formation.learn(encode_formation(CONFIG.cluster_id, pinned))
    history.formed()
    assert sorted(history.members) == [2, 3]
    assert not history.we_vote


def test_a_journal_whose_voters_cannot_be_read_is_refused(log: Log) -> None:
    log.journal.sync()
    log.rig.settle()
    journal = log.rig.open()
    journal.add(b"\0" + dumps((1, (b"no voters", ()))), journal.last_index + 1, 1)
    with pytest.raises(DamagedError, match="give the node an empty folder"):
        log.read(journal)


# The entry.


def test_an_entry_says_its_voters_and_other_commands_say_none() -> None:
    members = (voter(1), voter(2))
    assert voters_of(command(*members)) == members
    assert voters_of(command(*reversed(members))) == members
    assert voters_of(b"\1") is None
    assert voters_of(b"\0" + dumps((0, ((b"payload",),)))) is None


@pytest.mark.parametrize(
    "bad",
    [
        (),
        ((1, b"short", "h", 9),),
        ((1, bytes(16), "h"),),
        ((-1, bytes(16), "h", 9),),
        ((2**31, bytes(16), "h", 9),),
        ((1, bytes(16), "h", 2**16),),
        ((1, bytes(16), b"h", 9),),
        ((1, 16, "h", 9),),
        ((2, bytes(16), "h", 9), (1, bytes(16), "h", 9)),
        ((1, bytes(16), "h", 9), (1, bytes([1]) * 16, "h", 9)),
        tuple((n, bytes(16), "h", 9) for n in range(VOTERS_MAX + 1)),
        7,
    ],
)
def test_a_set_of_a_wrong_shape_is_refused(bad: object) -> None:
    with pytest.raises(BadBytesError):
        decode_voters(dumps(bad))
