"""The driver of fetch jobs: what a job gets where it waits, and what happens when it stops."""

import errno
from collections.abc import Callable, Generator
from functools import partial
from typing import Any

import pytest

from controller.storage.fetch_job import CannotGoOnError, FetchJob, NoHelpError, Steps
from ledger.segments import LOG_FOLDER
from tests.unit.controller.cluster import Cluster

PIECE = 1000


class Node:
    """Controller 3 with a job of its own; what the job did is in `done`."""

    def __init__(self) -> None:
        self.cluster = Cluster(catch_up_chunk_bytes=PIECE)
        self.failed: list[str] = []
        self.done: list[Any] = []
        self.job = FetchJob(
            self.cluster.controllers[3]._view._config,
            self.cluster.processes[3].clock,
            self.cluster.shared.nodes[3],
            self.failed.append,
        )

    def start(self, steps: Steps[None]) -> None:
        self.call(partial(self.job.start, steps))

    def call(self, callback: Callable[[], None]) -> None:
        self.cluster.processes[3].run(callback)

    def pausing(self, name: str) -> Steps[None]:
        try:
            yield from self.job.pause(1.0)
            self.done.append(f"{name} went on")
        finally:
            self.done.append(f"{name} ended")


@pytest.fixture
def node() -> Node:
    return Node()


def test_a_job_reads_a_peer_s_file_piece_by_piece(node: Node) -> None:
    cluster = node.cluster
    (name,) = cluster.ledger_files(1)
    whole = cluster.ledger_files(1)[name]

    def steps() -> Steps[None]:
        node.done.append((yield from node.job.list_files(1, LOG_FOLDER)))
        position = 0
        while piece := (yield from node.job.read(1, name, position)):
            node.done.append(piece)
            position += len(piece)

    node.start(steps())
    cluster.run(1.0)
    assert node.done[0] == {name.removeprefix("log/"): len(whole)}
    assert b"".join(node.done[1:]) == whole
    assert all(len(piece) <= PIECE for piece in node.done[1:])


def test_a_peer_that_does_not_answer_is_no_help(node: Node) -> None:
    node.cluster.shared.cut(3)

    def steps() -> Steps[None]:
        for wait in (
            node.job.list_files(1, LOG_FOLDER),
            node.job.read(1, f"{LOG_FOLDER}/x", 0),
        ):
            with pytest.raises(NoHelpError):
                yield from wait
            node.done.append("no help")

    node.start(steps())
    node.cluster.run(1.0)
    assert node.done == ["no help", "no help"]


def test_a_stopped_job_is_cleaned_up_at_once_and_never_goes_on(node: Node) -> None:
    node.start(node.pausing("one"))
    node.cluster.run(0.5)
    node.call(node.job.stop)
    assert node.done == ["one ended"]
    node.cluster.run(1.0)
    assert node.done == ["one ended"]


def test_a_new_job_replaces_the_one_that_runs(node: Node) -> None:
    node.start(node.pausing("one"))
    node.cluster.run(0.5)
    node.start(node.pausing("two"))
    node.cluster.run(0.7)
    assert node.done == ["one ended"]
    node.cluster.run(0.5)
    assert node.done == ["one ended", "two went on", "two ended"]


def test_a_job_that_stops_itself_ends_at_its_next_wait(node: Node) -> None:
    def steps() -> Steps[None]:
        node.job.stop()
        node.done.append("still here")
        yield from node.pausing("one")

    node.start(steps())
    assert node.done == ["still here", "one ended"]
    node.cluster.run(2.0)
    assert node.done == ["still here", "one ended"]


def test_a_job_may_start_the_next_one_as_its_last_step(node: Node) -> None:
    def steps() -> Steps[None]:
        yield from node.job.pause(0.1)
        node.job.start(node.pausing("two"))

    node.start(steps())
    node.cluster.run(2.0)
    assert node.done == ["two went on", "two ended"]


def long_work(done: list[object]) -> Generator[None, None, None]:
    for number in range(3):
        done.append(number)
        yield
    raise OSError(errno.ENOSPC, "full")


def test_what_goes_wrong_in_long_work_is_raised_where_the_job_waits(node: Node) -> None:
    def steps() -> Steps[None]:
        with pytest.raises(OSError, match="full"):
            yield from node.job.in_slices(long_work(node.done))
        node.done.append("went on")

    node.start(steps())
    assert node.done == [], "it begins in a slice of its own"
    node.cluster.run(1.0)
    assert node.done == [0, 1, 2, "went on"]


def test_a_stop_ends_long_work_too(node: Node) -> None:
    node.start(node.job.in_slices(long_work(node.done)))
    node.call(node.job.stop)
    node.cluster.run(1.0)
    assert node.done == []


def test_what_the_disk_refuses_is_raised_where_the_job_waits(node: Node) -> None:
    disk = node.cluster.shared.disks[3]
    node.cluster.faults[3].fail("create", error=errno.EROFS)

    def begin(on_done: Callable[[OSError | None], None]) -> None:
        disk.in_background(lambda: disk.make_folder("x"), lambda _done, error: on_done(error))

    def steps() -> Steps[None]:
        with pytest.raises(OSError, match="Read-only"):
            yield from node.job.written(begin)
        yield from node.job.written(begin)
        node.done.append("written")

    node.start(steps())
    node.cluster.run(1.0)
    assert node.done == ["written"]


def test_a_job_that_can_not_go_on_says_why_once_it_is_cleaned_up(node: Node) -> None:
    def steps() -> Steps[None]:
        try:
            yield from node.job.pause()
            raise CannotGoOnError("the disk is broken")
        finally:
            node.done.append(list(node.failed))

    node.start(steps())
    node.cluster.run(2.0)
    assert node.done == [[]]
    assert node.failed == ["the disk is broken"]
