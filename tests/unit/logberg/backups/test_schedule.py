"""When a controller makes a backup, who goes first, and what it tells of them."""

import structlog

from logberg.backups.schedule import BackupSchedule, Looked, rank_of
from runtime.metrics import Registry
from runtime.simulated.process import SimulatedProcess
from runtime.simulated.world import World

EVERY_S = 1000.0


class Looking:
    """Notes what it is asked, and answers when the test says so."""

    def __init__(self):
        self.asked = []
        self.waiting = None
        self.stopped = False

    def start(self, older_than_s, on_looked):
        assert self.waiting is None
        self.asked.append(older_than_s)
        self.waiting = on_looked

    def answer(self, found):
        waiting, self.waiting = self.waiting, None
        waiting(found)

    def stop(self):
        self.stopped = True


class Bench:
    def __init__(self, rank=0):
        self.world = World(1)
        self.clock = SimulatedProcess(self.world, 1).clock
        self.looking = Looking()
        self.registry = Registry()
        self.logs = structlog.testing.LogCapture()
        self.rank = rank
        self.schedule = BackupSchedule(
            self.clock,
            EVERY_S,
            lambda: self.rank,
            self.looking,
            self.registry,
            structlog.wrap_logger(None, processors=[self.logs]),
        )
        self.schedule.begin()

    def metrics(self):
        return self.registry.render().decode()


def looked(bench, *, made=False, age_s=0.0, removed=()):
    made_at = bench.clock.wall_ms() - int(age_s * 1000)
    return Looked("a.backup", made_at, 4711, 99, made, removed)


def test_the_first_standby_goes_first_and_the_leader_last():
    voters = [3, 1, 2]
    assert [rank_of(n, 1, voters) for n in (2, 3, 1)] == [0, 1, 2]
    assert rank_of(1, None, voters) == 0
    assert rank_of(1, 1, [1]) == 0
    assert rank_of(9, 1, voters) is None


def test_each_rank_waits_one_look_longer():
    for rank in (0, 1, 2):
        bench = Bench(rank)
        bench.world.run_for(100 * rank + 99)
        assert bench.looking.asked == []
        bench.world.run_for(2)
        assert bench.looking.asked == [EVERY_S + rank * 100]


def test_one_look_at_a_time():
    bench = Bench()
    bench.world.run_for(1000)
    assert len(bench.looking.asked) == 1
    bench.looking.answer(looked(bench))
    bench.world.run_for(100)
    assert len(bench.looking.asked) == 2


def test_a_node_that_may_not_vote_looks_not_at_all():
    bench = Bench(None)
    bench.world.run_for(1000)
    assert bench.looking.asked == []


def test_the_age_grows_until_there_is_a_new_one():
    bench = Bench()
    assert "\nlogberg_backup_age_seconds " not in bench.metrics()
    assert "\nlogberg_backup_every_seconds 1000" in bench.metrics()
    bench.world.run_for(101)
    bench.looking.answer(looked(bench, age_s=50))
    bench.world.run_for(10)
    assert "logberg_backup_age_seconds 60" in bench.metrics()
    assert "logberg_backup_log_end 4711" in bench.metrics()
    assert 'logberg_backup_looks_total{outcome="there"} 1' in bench.metrics()
    assert [each["event"] for each in bench.logs.entries] == []
    bench.world.run_for(90)
    bench.looking.answer(looked(bench, made=True, removed=("old.backup",)))
    assert "logberg_backup_age_seconds 0" in bench.metrics()
    assert [each["event"] for each in bench.logs.entries] == ["backup_made", "backups_removed"]


def test_a_failure_is_told_and_tried_again():
    bench = Bench()
    assert 'logberg_backup_looks_total{outcome="failed"} 0' in bench.metrics()
    bench.world.run_for(101)
    bench.looking.answer("the place is gone")
    assert bench.logs.entries[-1] == {
        "event": "backup_failed",
        "why": "the place is gone",
        "log_level": "error",
    }
    assert 'logberg_backup_looks_total{outcome="failed"} 1' in bench.metrics()
    bench.world.run_for(100)
    assert len(bench.looking.asked) == 2


def test_after_a_stop_nothing_is_told():
    bench = Bench()
    bench.world.run_for(101)
    bench.schedule.stop()
    bench.looking.answer("terminated")
    bench.world.run_for(1000)
    assert bench.looking.stopped
    assert bench.logs.entries == []
    assert len(bench.looking.asked) == 1
