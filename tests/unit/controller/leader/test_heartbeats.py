"""Sessions run on awake time, and no broker is fenced because of our stalls."""

from typing import NamedTuple

import pytest

from controller.leader.heartbeats import NOT_REPORTED, AwakeTime, Heartbeats

SESSION_S, GRACE_S, BEAT_S = 9.0, 4.0, 0.1


class Clock:
    """A manual clock. Timers fire when `sleep` passes them, but not in `stall`."""

    def __init__(self):
        self.now = 100.0
        self.timers = []

    def monotonic(self):
        return self.now

    def call_later(self, delay_s, callback):
        timer = Timer(self.now + delay_s, callback)
        self.timers.append(timer)
        return timer

    def sleep(self, seconds):
        """Let time pass, and fire timers."""
        until = self.now + seconds
        while due := sorted((t for t in self.timers if t.due <= until), key=lambda t: t.due):
            self.timers.remove(due[0])
            self.now = max(self.now, due[0].due)
            if due[0].callback is not None:
                due[0].callback()
        self.now = until

    def stall(self, seconds):
        """Let time pass without firing timers."""
        self.now += seconds


class Timer:
    def __init__(self, due, callback):
        self.due, self.callback = due, callback

    def cancel(self):
        self.callback = None


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def stalls():
    return []


@pytest.fixture
def awake(clock, stalls):
    time = AwakeTime(clock, BEAT_S, stalls.append)
    time.start()
    return time


class Known(NamedTuple):
    """A registration."""

    broker_id: int
    broker_epoch: int
    fenced: bool = False
    active: bool = False


class Registrations(dict):
    """The registrations of an image. Counts what was read of them all."""

    def __init__(self, *known):
        super().__init__({broker.broker_id: broker for broker in known})
        self.read = 0

    def unordered_items(self):
        for item in self.items():
            self.read += 1
            yield item


@pytest.fixture
def heartbeats(awake):
    table = Heartbeats(awake, SESSION_S, GRACE_S)
    for _ in table.begin(Registrations(Known(1, 10), Known(2, 20, fenced=True))):
        pass
    return table


@pytest.fixture
def filling(awake):
    """A table of a new leader, of which nothing is filled yet."""
    table = Heartbeats(awake, SESSION_S, GRACE_S)
    known = [Known(b, 10 * b, fenced=b == 2, active=b != 2) for b in range(1, 1_001)]
    registrations = Registrations(*known)
    return table, registrations, table.begin(registrations)


def test_stalls_do_not_count_before_and_after_the_beat_that_sees_them(clock, awake, stalls):
    clock.sleep(1.0)
    start = awake.now()
    clock.stall(5.0)
    asleep = awake.now()
    assert asleep - start <= BEAT_S + 1e-9
    clock.sleep(0.001)
    assert awake.now() >= asleep
    clock.sleep(1.0)
    assert awake.now() - start == pytest.approx(1.0, abs=2 * BEAT_S)
    assert stalls == [pytest.approx(5.0, abs=BEAT_S)]
    assert awake.stalled_s() == pytest.approx(5.0, abs=BEAT_S)


def test_awake_time_never_goes_back(clock, awake):
    last = awake.now()
    for seconds in (0.05, 0.3, 0.01, 7.0, 0.1, 0.2):
        clock.stall(seconds)
        assert awake.now() >= last
        last = awake.now()
        clock.sleep(0.03)
        assert awake.now() >= last
        last = awake.now()


def test_many_short_stalls_lengthen_sessions_by_their_sum(clock, heartbeats, awake):
    for _ in range(40):  # each beat comes 0.2 s late: too short to be told, 8 s together
        clock.stall(BEAT_S + 0.2)
        clock.sleep(0.0)
    assert heartbeats.most_overdue() is None
    assert heartbeats.next_deadline_s() == pytest.approx(SESSION_S - 4.0, abs=0.2)


def test_an_unfenced_broker_is_overdue_after_a_session_and_a_fenced_one_never(clock, heartbeats):
    clock.sleep(SESSION_S - 0.01)
    assert heartbeats.most_overdue() is None
    clock.sleep(0.02)
    assert heartbeats.most_overdue() == 1
    heartbeats.watch(1, watched=False)
    assert heartbeats.most_overdue() is None


def test_contact_counts_only_with_the_broker_epoch(clock, heartbeats):
    clock.sleep(5.0)
    heartbeats.touch(1, 11)
    assert not heartbeats.report(1, 11, 50)
    clock.sleep(5.0)
    assert heartbeats.most_overdue() == 1
    heartbeats.touch(1, 10)
    assert heartbeats.report(1, 10, 50)
    assert heartbeats.most_overdue() is None
    assert heartbeats.applied_offset(1) == 50
    assert not heartbeats.report(1, 10, 49)
    assert heartbeats.applied_offset(1) == 50
    assert heartbeats.applied_offset(2) == NOT_REPORTED


def test_a_fenced_broker_counts_as_alive_for_the_grace_only_after_an_election(clock, heartbeats):
    assert heartbeats.is_alive(2, 20)
    assert not heartbeats.is_alive(2, 21)
    clock.sleep(GRACE_S + 0.1)
    assert not heartbeats.is_alive(2, 20)
    assert heartbeats.is_alive(1, 10)
    assert heartbeats.silence_s(1) is None
    heartbeats.touch(1, 10)
    clock.sleep(1.0)
    assert heartbeats.silence_s(1) == pytest.approx(1.0, abs=0.01)


def test_the_longest_overdue_comes_first(clock, heartbeats):
    heartbeats.register(3, 30, watched=True)
    clock.sleep(1.0)
    heartbeats.register(4, 40, watched=True)
    clock.sleep(20.0)
    assert heartbeats.most_overdue() == 1
    heartbeats.forget(1)
    assert heartbeats.most_overdue() == 3
    heartbeats.clear()
    assert heartbeats.most_overdue() is None
    assert heartbeats.next_deadline_s() is None


def test_unfencing_begins_a_session_anew(clock, heartbeats):
    clock.sleep(GRACE_S + 3.0)
    heartbeats.watch(2, watched=True)
    clock.sleep(SESSION_S - 0.1)
    heartbeats.forget(1)
    assert heartbeats.most_overdue() is None
    clock.sleep(0.2)
    assert heartbeats.most_overdue() == 2


def test_the_lowest_applied_offset_is_that_of_the_active_brokers(heartbeats):
    assert heartbeats.lowest_applied() is None
    heartbeats.note_active(1, active=True)
    assert heartbeats.lowest_applied() == NOT_REPORTED
    heartbeats.report(1, 10, 50)
    heartbeats.report(2, 20, 30)
    assert heartbeats.lowest_applied() == 50
    heartbeats.note_active(2, active=True)
    assert (heartbeats.lowest_applied(), heartbeats.behind(50)) == (30, [2])
    heartbeats.report(2, 20, 70)
    assert (heartbeats.lowest_applied(), heartbeats.behind(71)) == (50, [1, 2])
    heartbeats.note_active(1, active=False)
    assert heartbeats.lowest_applied() == 70
    # The next process of an active broker, or one that nobody hears of, has reported nothing.
    heartbeats.register(2, 21, watched=True)
    assert heartbeats.lowest_applied() == NOT_REPORTED
    heartbeats.report(2, 21, 80)
    assert heartbeats.lowest_applied() == 80
    heartbeats.forget(2)
    assert heartbeats.lowest_applied() == NOT_REPORTED
    heartbeats.clear()
    assert heartbeats.lowest_applied() is None


def test_a_broker_that_is_being_fenced_is_not_reported_again(clock, heartbeats):
    heartbeats.register(3, 30, watched=True)
    clock.sleep(SESSION_S + 1.0)
    assert heartbeats.most_overdue() == 1
    heartbeats.set_aside(1)
    assert heartbeats.most_overdue() == 3
    heartbeats.set_aside(3)
    assert heartbeats.most_overdue() is None
    assert heartbeats.next_deadline_s() is None
    heartbeats.put_back(1)
    assert heartbeats.most_overdue() == 1


def test_a_new_leader_knows_all_sessions_before_its_table_is_filled(clock, filling):
    table, registrations, _ = filling
    assert registrations.read == 0
    assert table.is_alive(1, 10)
    assert not table.is_alive(1, 11)
    assert table.next_deadline_s() == pytest.approx(SESSION_S, abs=0.01)
    table.touch(3, 30)
    assert table.report(3, 30, 70)
    assert table.applied_offset(3) == 70
    assert table.lowest_applied() == NOT_REPORTED
    clock.sleep(GRACE_S + 0.1)
    assert not table.is_alive(2, 20)
    assert table.is_alive(1_000, 10_000)
    assert table.most_overdue() is None
    assert registrations.read == 0


def test_a_table_is_filled_in_steps_with_what_came_before_kept(clock, filling):
    table, registrations, steps = filling
    next(steps)
    assert registrations.read == 1
    clock.sleep(1.0)
    table.touch(3, 30)
    table.register(4, 41, watched=True)
    table.note_active(5, active=False)
    table.note_active(6, active=False)
    table.forget(6)
    table.watch(7, watched=False)
    most = 0
    while (before := registrations.read) < 1_000:
        next(steps, None)
        most = max(most, registrations.read - before)
    next(steps, None)
    assert most <= 64
    assert not table.is_alive(6, 60)
    assert table.is_alive(4, 41)
    assert set(table.behind(1)) == set(range(1, 1_001)) - {2, 5, 6}
    clock.sleep(SESSION_S - 0.5)
    overdue = set()
    while (broker_id := table.most_overdue()) is not None:
        overdue.add(broker_id)
        table.set_aside(broker_id)
    assert overdue == set(range(1, 1_001)) - {2, 3, 4, 6, 7}


def test_whoever_must_see_the_whole_table_fills_it(clock, filling):
    table, _, steps = filling
    assert table.behind(1) == sorted(set(range(1, 1_001)) - {2})
    assert next(steps, None) is None
    table.report(1, 10, 5)
    assert table.lowest_applied() == NOT_REPORTED
    clock.sleep(SESSION_S + 0.1)
    assert table.most_overdue() == 1


def test_sessions_end_although_the_table_was_never_filled(clock, filling):
    table, _, _ = filling
    clock.sleep(SESSION_S + 0.1)
    assert table.most_overdue() == 1


def test_a_table_that_is_being_filled_is_left_when_the_leadership_ends(filling):
    table, registrations, steps = filling
    next(steps)
    table.clear()
    assert next(steps, None) is None
    assert registrations.read <= 2
    assert not table.is_alive(1, 10)
    assert table.next_deadline_s() is None
