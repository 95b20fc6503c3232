"""Batches replayed onto an image: in order, all or none, and never onto another history."""

import msgspec
import pytest

from broker_agent.states import BrokerState
from broker_agent.view import (
    DiffersError,
    MetadataView,
    PlacedImage,
    TooNewError,
    UnusableAnswerError,
)
from ledger.batch import BatchHeader, seal
from ledger.chain import LogMark
from metadata.image import image_from_records, image_to_records
from metadata.messages.fetch import StateAt
from metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    NoOpRecord,
    RequestOutcomeRecord,
)
from metadata.steps import finished
from tests.simulation.quorum_cluster import quiet_log
from tests.unit.broker_agent.fake_cluster import (
    CLUSTER_ID,
    Log,
    partition,
    sealed,
    topic,
)
from tests.unit.broker_agent.rig import Rig, Seen

REFUSED = (DiffersError, UnusableAnswerError, TooNewError)


@pytest.fixture
def log() -> Log:
    log = Log()
    for number in range(1, 9):
        log.append(topic(number), partition(number, 0, (1, 2, 3), 1))
    return log


class Following:
    def __init__(self, log: Log, upto: int) -> None:
        self.seen = Seen()
        self.log = log
        self.view = MetadataView(CLUSTER_ID, (self.seen,), quiet_log())
        finished(self.view.release_in_steps())
        if upto:
            finished(self.view.apply_in_steps([b.encoded for b in log.batches[:upto]]))

    def refuses(self, error, batches, state=None) -> str:
        """Nothing has changed afterwards."""
        before = (self.view.image, self.view.mark, list(self.seen.steps), dict(self.view._hashes))
        with pytest.raises(error) as caught:
            finished(self.view.apply_in_steps([b.encoded for b in batches], state))
        after = (self.view.image, self.view.mark, self.seen.steps, self.view._hashes)
        assert after == before
        finished(self.view.apply_in_steps([b.encoded for b in self.log.batches]))
        assert self.view.mark == self.log.mark, "it can still follow the right ones"
        return str(caught.value)


def test_batches_in_order_make_the_log_s_image(log):
    following = Following(log, 8)
    assert following.view.image.same_state(log.image)
    assert following.view.mark == log.mark
    assert following.seen.steps == [(0, 16, 16, False)]


def test_batches_that_are_here_already_are_passed_over(log):
    following = Following(log, 3)
    finished(following.view.apply_in_steps([b.encoded for b in log.batches]))
    assert following.view.mark == log.mark
    finished(following.view.apply_in_steps([b.encoded for b in log.batches]))
    assert len(following.seen.steps) == 2, "nothing new, nothing published"


def test_a_gap_is_refused_whole(log):
    following = Following(log, 3)
    why = following.refuses(UnusableAnswerError, log.batches[4:])
    assert "offset 6 must follow" in why


def test_batches_out_of_order_are_refused_whole(log):
    b = log.batches
    Following(log, 3).refuses(UnusableAnswerError, [b[3], b[5], b[4]])


def test_a_fork_is_refused_whole(log):
    following = Following(log, 3)
    fork = Log()
    for _ in range(4):
        fork.append(NoOpRecord(), NoOpRecord())
    forged = sealed(fork.mark, 1, NoOpRecord())
    good = log.batches[3]
    why = following.refuses(DiffersError, [good, forged])
    assert "the chain is broken" in why


def test_a_fork_below_our_end_is_refused(log):
    following = Following(log, 3)
    mark = LogMark(5, bytes(32), 1, 0)
    straddling = sealed(mark, 1, NoOpRecord(), NoOpRecord())
    following.refuses(DiffersError, [straddling])


def test_an_epoch_that_falls_is_refused(log):
    log.epoch = 3
    log.fill(1)
    following = Following(log, 9)
    following.refuses(DiffersError, [sealed(log.mark, 2, NoOpRecord())])


def test_a_damaged_batch_is_refused_whole_and_is_no_other_history(log):
    following = Following(log, 3)
    damaged = bytearray(log.batches[4].encoded)
    damaged[-20] ^= 1
    with pytest.raises(UnusableAnswerError, match="damaged"):
        finished(following.view.apply_in_steps([log.batches[3].encoded, bytes(damaged)]))
    assert following.view.fetched_offset == 6


def test_a_record_that_cannot_be_replayed_is_refused_whole(log):
    following = Following(log, 8)
    unknown_topic = partition(99, 0, (1,), 1)
    second = sealed(log.mark, 1, unknown_topic)
    following.refuses(DiffersError, [second])


def test_a_format_or_record_that_is_not_known_is_never_skipped(log):
    following = Following(log, 8)
    header = sealed(log.mark, 1, NoOpRecord()).header
    unknown = seal(header, msgspec.msgpack.encode([[999_900, 1]]))
    assert "upgrade" in following.refuses(TooNewError, [unknown])


def test_a_newer_cluster_sends_an_old_agent_away():
    rig = Rig()
    rig.online()
    log = rig.log
    unknown = seal(
        BatchHeader(log.end, 1, 1, 10**6, log.batches[0].header.provenance, log.mark.head),
        msgspec.msgpack.encode([[999_900, 1]]),
    )
    log.batches.append(unknown)
    rig.active.wake()
    rig.run(0.1)
    assert rig.state is BrokerState.GONE
    assert rig.gone[1] is False
    assert "too old" in rig.gone[0]


def test_another_state_at_the_same_offset_is_refused_before_anybody_sees_it(log):
    following = Following(log, 3)
    right = log.state_at(8)
    wrong = StateAt(offset=8, chain_hash=right.chain_hash, state_hash=bytes(32))
    assert "our state" in following.refuses(DiffersError, log.batches[3:4], wrong)


def test_another_chain_at_an_older_offset_is_refused(log):
    following = Following(log, 3)
    right = log.state_at(6)
    wrong = StateAt(offset=6, chain_hash=bytes(32), state_hash=right.state_hash)
    assert "our log" in following.refuses(DiffersError, log.batches[3:4], wrong)


def test_an_offset_that_is_not_known_any_more_says_nothing(log):
    following = Following(log, 3)
    nowhere = StateAt(offset=5, chain_hash=bytes(32), state_hash=bytes(32))
    finished(following.view.apply_in_steps([log.batches[3].encoded], nowhere))
    assert following.view.fetched_offset == 8


def test_the_state_is_kept_at_each_step_of_the_controllers():
    log = Log()
    log.fill(2100)
    following = Following(log, 2100)
    assert {1024, 2048, 2100} <= set(following.view._hashes)
    assert len(following.view._hashes) <= 64


def test_what_only_controllers_hold_does_not_count(log):
    log.append(RequestOutcomeRecord(bytes(15) + b"\1", bytes(32), b"answer", 5_000))
    following = Following(log, 9)
    finished(following.view.apply_in_steps([], log.state_at(log.end)))
    assert len(following.view.image.outcomes) == 0


# Transactions.


def test_a_transaction_is_held_until_its_end(log):
    following = Following(log, 8)
    view = following.view
    log.append(BeginTransactionRecord("big"), topic(20))
    log.append(partition(20, 0, (1,), 1))
    finished(view.apply_in_steps([b.encoded for b in log.batches[8:]], log.state_at(log.end)))
    assert view.fetched_offset == 19
    assert view.applied_offset == 16, "what is not shown is not applied"
    assert "topic-20" not in view.image.topics.by_name
    assert following.seen.steps[-1][2] == 16
    log.append(EndTransactionRecord())
    finished(view.apply_in_steps([log.batches[-1].encoded], log.state_at(log.end)))
    assert view.applied_offset == view.fetched_offset == 20
    assert view.image.same_state(log.image)
    assert "topic-20" in view.image.topics.by_name


def test_a_transaction_that_is_aborted_was_never_there(log):
    following = Following(log, 8)
    log.append(NoOpRecord(), BeginTransactionRecord("big"), topic(20))
    finished(following.view.apply_in_steps([log.batches[-1].encoded]))
    assert following.view.applied_offset == 17, "the record before its Begin is shown"
    log.append(AbortTransactionRecord("no"))
    finished(following.view.apply_in_steps([log.batches[-1].encoded], log.state_at(log.end)))
    assert "topic-20" not in following.view.image.topics.by_name


def test_the_agent_says_what_it_shows_not_what_it_holds():
    rig = Rig()
    rig.online()
    rig.do(lambda: rig.active.commit(BeginTransactionRecord("big"), topic(1)))
    begin = rig.log.end - 2
    rig.run(0.1)
    fetch = rig.controllers.last.fetch
    assert (fetch.fetched_offset, fetch.applied_offset) == (rig.log.end, begin)
    rig.run(10)
    assert rig.agent.may_serve()
    rig.do(lambda: rig.active.commit(EndTransactionRecord()))
    rig.run(0.1)
    assert rig.controllers.last.fetch.applied_offset == rig.log.end


def test_a_broker_comes_online_while_a_transaction_is_open():
    rig = Rig()
    rig.log.fill(2)
    rig.active.may_unfence = False
    rig.start()
    rig.run(0.5)
    rig.do(lambda: rig.active.commit(BeginTransactionRecord("big"), topic(1)))
    rig.run(9.0)
    rig.active.silent = True
    rig.run(9.0)
    rig.active.silent = False
    rig.run(3.0)
    assert rig.agent.catching_up.caught_up


# Images that replace.


def placed(log: Log) -> PlacedImage:
    image = image_from_records(
        image_to_records(log.image),
        log.end,
        log.mark.epoch,
        log.mark.timestamp_ms,
        keep_outcomes=False,
    )
    return PlacedImage(image, log.mark)


def test_an_image_that_is_loaded_replaces_and_says_so(log):
    following = Following(log, 3)
    finished(following.view.replace_in_steps(placed(log)))
    assert following.seen.steps[-1] == (6, 16, 16, True)
    log.fill(1)
    finished(following.view.apply_in_steps([log.batches[-1].encoded], log.state_at(log.end)))
    assert following.seen.steps[-1] == (16, 17, 17, False)


def test_after_forgetting_readers_keep_theirs_until_the_new_one_is_whole(log):
    following = Following(log, 8)
    view = following.view
    old = view.image
    view.forget()
    assert (view.fetched_offset, view.fetched_epoch) == (0, -1)
    for batch in log.batches[:5]:
        finished(view.apply_in_steps([batch.encoded]))
        assert view.image is old
    finished(view.apply_in_steps([b.encoded for b in log.batches]))
    assert view.image is old
    finished(view.release_in_steps())
    assert following.seen.steps[-1] == (16, 16, 16, True)
    assert view.image.same_state(log.image)


def test_a_publisher_that_fails_does_not_stop_the_others(log):
    calls = []

    class Named:
        def __init__(self, name, fails=False):
            self.name, self.fails = name, fails

        def on_metadata(self, before, after, manifest):
            calls.append((self.name, manifest.offset))
            if self.fails:
                raise RuntimeError("a mistake")

    view = MetadataView(CLUSTER_ID, (Named("a"), Named("b", fails=True), Named("c")), quiet_log())
    finished(view.release_in_steps())
    finished(view.apply_in_steps([log.batches[0].encoded]))
    finished(view.apply_in_steps([log.batches[1].encoded]))
    assert calls == [(name, offset) for offset in (2, 4) for name in "abc"]
    assert view.publisher_failures == 2


def test_the_manifest_has_the_newest_batch(log):
    manifests = []

    class Keeper:
        def on_metadata(self, before, after, manifest):
            manifests.append(manifest)

    view = MetadataView(CLUSTER_ID, (Keeper(),), quiet_log())
    finished(view.release_in_steps())
    finished(view.apply_in_steps([b.encoded for b in log.batches]))
    newest = log.batches[-1].header
    assert (manifests[0].epoch, manifests[0].timestamp_ms) == (newest.epoch, newest.timestamp_ms)
