"""Which confirmation counts for which contact, what is forwarded again, and the bounds."""

from typing import Any

import msgspec
import pytest

from controller.replica import contact_sender
from controller.replica.contact_sender import (
    BULKS_MAX,
    COLLECT_S,
    CONFIRM_S,
    WAITING_MAX,
    Confirmed,
    ContactSender,
)
from controller.replica.contacts import (
    BULK_MAX,
    LIFE_BYTES,
    Bulk,
    Confirmation,
    ForwardedContact,
    Word,
    decode_bulk,
    decode_confirmation,
    encode_message,
)
from quorum.api import LeaderAndEpoch
from quorum.wire.frames import CONTACTS_BYTES_MAX
from runtime.simulated.process import SimulatedProcess
from runtime.simulated.world import World

LIFE, OTHER_LIFE = b"1" * LIFE_BYTES, b"2" * LIFE_BYTES
EPOCH = 7


class Rig:
    """A sender on node 2. Node 1 leads."""

    def __init__(self):
        self.world = World(1)
        self.process = SimulatedProcess(self.world, 2)
        self.leader = LeaderAndEpoch(1, EPOCH)
        self.sent = []
        self.room = True
        self.words = {}
        self.sender = ContactSender(self.process.clock, 2, LIFE, lambda: self.leader, self.send)

    def send(self, node_id, data):
        assert node_id == self.leader.leader
        if self.room:
            self.sent.append(decode_bulk(data))
        return self.room

    def take(self, *broker_ids):
        for broker_id in broker_ids:
            heard = self.words.setdefault(broker_id, [])
            contact = ForwardedContact(broker_id, 10, 100, None)
            self.process.run(lambda c=contact, h=heard: self.sender.take(c, h.append))

    def run(self, seconds):
        self.world.run_for(seconds)

    def confirm(self, bulk, words=None, **changes):
        words = bytes([Word.ONLINE] * len(bulk.contacts)) if words is None else words
        message = Confirmation(bulk.life, bulk.epoch, bulk.number, 9_000, words)
        data = encode_message(msgspec.structs.replace(message, **changes))
        self.process.run(lambda: self.sender.on_confirmed(data))

    def lead(self, leader, epoch):
        self.leader = LeaderAndEpoch(leader, epoch)
        self.process.run(self.sender.on_leader)


@pytest.fixture
def rig():
    return Rig()


def told(word=Word.ONLINE, epoch=EPOCH):
    return [Confirmed(epoch, word, 9_000)]


def test_contacts_are_collected_and_go_out_together(rig):
    rig.take(1, 2)
    assert rig.sent == []
    rig.run(COLLECT_S)
    assert [(b.life, b.epoch, b.number) for b in rig.sent] == [(LIFE, EPOCH, 1)]
    assert [contact.broker_id for contact in rig.sent[0].contacts] == [1, 2]


def test_each_gets_its_own_word(rig):
    rig.take(1, 2, 3)
    rig.run(COLLECT_S)
    rig.confirm(rig.sent[0], bytes([Word.FENCED, Word.ONLINE, Word.UNDECIDED]))
    assert [rig.words[n] for n in (1, 2, 3)] == [
        told(Word.FENCED),
        told(Word.ONLINE),
        told(Word.UNDECIDED),
    ]
    rig.run(1.0)
    assert all(len(heard) == 1 for heard in rig.words.values())


NOT_OURS: dict[str, dict[str, Any]] = {
    "of another process of this standby": {"life": OTHER_LIFE},
    "of an older epoch": {"epoch": EPOCH - 1},
    "of a newer epoch than is known": {"epoch": EPOCH + 1},
    "of a bulk that was not sent": {"number": 2},
    "of another number of contacts": {"words": bytes(2)},
    "with an unknown word": {"words": b"\x09"},
    "with an impossible session": {"session_ms": 0},
}


@pytest.mark.parametrize("case", NOT_OURS)
def test_a_confirmation_does_not_count(rig, case):
    rig.take(1)
    rig.run(COLLECT_S)
    rig.confirm(rig.sent[0], **NOT_OURS[case])
    assert rig.words[1] == []
    rig.confirm(rig.sent[0])
    assert rig.words[1] == told()


def test_a_confirmation_counts_once(rig):
    rig.take(1)
    rig.run(COLLECT_S)
    rig.confirm(rig.sent[0])
    rig.confirm(rig.sent[0])
    assert rig.words[1] == told()


def test_at_a_new_epoch_all_that_waits_is_forwarded_again(rig):
    rig.take(1)
    rig.run(COLLECT_S)
    rig.take(2)
    rig.lead(3, EPOCH + 1)
    rig.run(COLLECT_S)
    again = rig.sent[1]
    assert (again.epoch, again.number) == (EPOCH + 1, 1)
    assert [contact.broker_id for contact in again.contacts] == [1, 2]
    rig.confirm(rig.sent[0])
    assert rig.words[1] == []
    rig.confirm(again)
    assert rig.words[1] == rig.words[2] == told(epoch=EPOCH + 1)


def test_an_epoch_is_found_without_being_told(rig):
    """The quorum knows of it before its listener does."""
    rig.take(1)
    rig.run(COLLECT_S)
    rig.leader = LeaderAndEpoch(3, EPOCH + 1)
    rig.confirm(rig.sent[0])
    assert rig.words[1] == []
    assert not rig.sender.is_current(EPOCH)


def test_what_is_not_confirmed_in_time_is_given_up(rig):
    rig.take(1)
    rig.run(CONFIRM_S - 0.01)
    assert rig.words[1] == []
    rig.run(CONFIRM_S / 2)
    assert rig.words[1] == [None]
    rig.confirm(rig.sent[0])
    assert rig.words[1] == [None]
    assert (rig.sender.confirmed, rig.sender.given_up) == (0, 1)


def test_a_full_queue_or_an_old_peer_is_not_waited_for(rig):
    rig.room = False
    rig.take(1)
    rig.run(COLLECT_S)
    assert rig.words[1] == [None]


def test_without_a_leader_contacts_wait_for_one(rig):
    rig.lead(None, EPOCH)
    assert not rig.sender.can_forward(EPOCH)
    rig.take(1)
    rig.run(COLLECT_S * 2)
    assert rig.sent == []
    rig.lead(3, EPOCH + 1)
    rig.run(COLLECT_S)
    assert len(rig.sent) == 1


def test_who_begins_to_lead_forwards_nothing(rig):
    rig.take(1)
    rig.run(COLLECT_S)
    rig.take(2)
    rig.lead(2, EPOCH + 1)
    assert rig.words == {1: [None], 2: [None]}
    assert not rig.sender.can_forward(EPOCH)


@pytest.mark.parametrize(("seen", "can"), [(EPOCH - 1, True), (EPOCH, True), (EPOCH + 1, False)])
def test_a_broker_that_has_seen_a_newer_epoch_is_not_taken(rig, seen, can):
    assert rig.sender.can_forward(seen) is can


def test_a_full_bulk_goes_at_once_and_bulks_under_way_are_bounded(rig):
    rig.take(*range(BULK_MAX * (BULKS_MAX + 2)))
    assert [len(bulk.contacts) for bulk in rig.sent] == [BULK_MAX] * BULKS_MAX
    rig.run(COLLECT_S * 2)
    assert len(rig.sent) == BULKS_MAX
    rig.confirm(rig.sent[0])
    assert len(rig.sent) == BULKS_MAX + 1


def test_contacts_that_wait_are_bounded(rig, monkeypatch):
    assert WAITING_MAX > BULK_MAX * BULKS_MAX
    monkeypatch.setattr(contact_sender, "WAITING_MAX", 3)
    rig.take(1, 2, 3, 4)
    assert rig.words == {1: [], 2: [], 3: [], 4: [None]}
    rig.run(COLLECT_S)
    rig.confirm(rig.sent[0])
    rig.take(5)
    assert rig.words[5] == []


def test_the_largest_bulk_fits_into_a_frame():
    largest = ForwardedContact(2**31 - 1, 2**62, 2**62, "9" * 64)
    bulk = Bulk(LIFE, 2**62, 2**62, (largest,) * BULK_MAX)
    assert len(encode_message(bulk)) <= CONTACTS_BYTES_MAX
    assert decode_bulk(encode_message(bulk)) == bulk


BAD_BULKS = {
    "nothing": b"",
    "no array": msgspec.msgpack.encode({}),
    "a wrong shape": msgspec.msgpack.encode([LIFE, 1, 1]),
    "a contact of a wrong shape": msgspec.msgpack.encode([LIFE, 1, 1, [[1, 2]]]),
    "a life of a wrong length": msgspec.msgpack.encode([b"short", 1, 1, []]),
    "too many contacts": msgspec.msgpack.encode([LIFE, 1, 1, [[1, 2, 3, None]] * (BULK_MAX + 1)]),
}


@pytest.mark.parametrize("case", BAD_BULKS)
def test_bytes_that_are_no_bulk(case):
    assert decode_bulk(BAD_BULKS[case]) is None
    assert decode_confirmation(BAD_BULKS[case]) is None
