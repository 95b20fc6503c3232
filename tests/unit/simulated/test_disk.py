"""The simulated disk beyond the conformance suite: durability, latency, faults, death."""

import errno
from collections.abc import Callable

import pytest

from runtime.disk.interface import FolderInUseError
from runtime.simulated.disk import SimulatedDisk
from runtime.simulated.disk_faults import FAST, SLOW, STUCK
from runtime.simulated.host import SimulatedHost
from runtime.simulated.network import SimulatedNetwork
from runtime.simulated.process import SimulatedProcess
from runtime.simulated.world import World


def a_host(seed: int = 1) -> SimulatedHost:
    world = World(seed)
    host = SimulatedHost(world, SimulatedNetwork(world), 1)
    host.boot()
    return host


@pytest.fixture
def host() -> SimulatedHost:
    return a_host()


@pytest.fixture
def disk(host: SimulatedHost) -> SimulatedDisk:
    return host.disk()


def after_power_loss(
    write: Callable[[SimulatedDisk], None], seeds: int = 60
) -> set[tuple[tuple[str, bytes], ...]]:
    """The contents of the folder that a loss of power can leave."""
    found: set[tuple[tuple[str, bytes], ...]] = set()
    for seed in range(seeds):
        host = a_host(seed)
        write(host.disk())
        host.lose_power()
        found.add(tuple(host.platter.snapshot().items()))
    return found


def test_a_second_folder_of_a_host_is_another_one() -> None:
    host = a_host()
    own, second = host.disk(), host.disk("broker")
    for disk, content in ((own, b"own"), (second, b"second")):
        disk.lock()
        disk.open("a").append(content)
    assert (own.read("a"), second.read("a")) == (b"own", b"second")


def test_a_loss_of_power_hits_the_second_folder_too() -> None:
    lost = 0
    for seed in range(40):
        host = a_host(seed)
        host.disk("broker").open("a").append(b"a" * 600)
        host.lose_power()
        host.boot()
        lost += not host.disk("broker").exists("a")
    assert lost > 3


def test_a_sync_covers_what_was_appended_before_it_and_no_more() -> None:
    whole, lost = 0, 0
    for seed in range(40):
        host = a_host(seed)
        disk = host.disk()
        file = disk.open("a")
        disk.sync_folder("")
        file.append(b"a" * 600)
        outcomes: list[OSError | None] = []
        disk.sync(file, outcomes.append)
        file.append(b"b" * 600)
        assert host.world.run_for(10, lambda outcomes=outcomes: bool(outcomes))
        host.lose_power()
        left = bytes(host.platter.names["a"].content)
        assert left.startswith(b"a" * 600)
        whole += left == b"a" * 600 + b"b" * 600
        lost += left == b"a" * 600
    assert whole > 3
    assert lost > 3


def test_a_sync_that_has_not_called_back_promises_nothing() -> None:
    def write(disk: SimulatedDisk) -> None:
        file = disk.open("a")
        disk.sync_folder("")
        file.append(b"x" * 100)
        disk.sync(file, lambda _: None)

    assert {(("a", b""),), (("a", b"x" * 100),)} <= after_power_loss(write)


def test_names_are_durable_only_after_a_sync_of_their_folder() -> None:
    def write(disk: SimulatedDisk) -> None:
        for name in ("old", "kept"):
            disk.replace(name, name.encode())
        disk.open("new").sync()
        disk.rename("old", "renamed")
        disk.unlink("kept")

    found = {frozenset(dict(files)) for files in after_power_loss(write, 200)}
    assert frozenset({"old", "kept"}) in found
    assert frozenset({"new", "renamed"}) in found
    for names in found:
        # A rename is never half done, nor is its file lost.
        assert ("old" in names) != ("renamed" in names)
    assert len(found) == 8

    def synced(disk: SimulatedDisk) -> None:
        write(disk)
        disk.sync_folder("")

    assert {frozenset(dict(files)) for files in after_power_loss(synced)} == {
        frozenset({"new", "renamed"})
    }


def test_a_file_that_moves_between_folders_is_never_lost() -> None:
    def move(*synced: str) -> set[frozenset[str]]:
        def write(disk: SimulatedDisk) -> None:
            disk.make_folder("from")
            disk.make_folder("to")
            disk.replace("from/a", b"x")
            disk.rename("from/a", "to/a")
            for folder in synced:
                disk.sync_folder(folder)

        return {frozenset(dict(files)) for files in after_power_loss(write)}

    before, after = frozenset({"from/a"}), frozenset({"to/a"})
    assert move() == {before, after}
    assert move("from") == {before, after}
    assert move("to") == {before | after, after}
    assert move("from", "to") == move("to", "from") == {after}


def test_replace_leaves_the_old_or_the_new_wherever_it_is_cut_short() -> None:
    host = a_host()
    host.disk().replace("a", b"old")
    steps = host.faults.steps
    found = []
    for step in range(steps + 1):
        for seed in range(20):
            host = a_host(seed)
            disk = host.disk()
            disk.replace("a", b"old")
            host.faults.kill_at(step, torn=0.5)
            host.process.run(lambda disk=disk: disk.replace("a", b"newer"))
            assert host.running == (step == steps)
            if seed % 2:
                host.lose_power()
            found.append(bytes(host.platter.names["a"].content))
            if host.running:
                assert found[-1] == b"newer"
    assert set(found) == {b"old", b"newer"}


def test_a_kill_in_a_write_leaves_the_part_that_was_asked_for(host: SimulatedHost) -> None:
    disk = host.disk()
    file = disk.open("a")
    host.faults.kill_at(1, torn=0.5)

    def write() -> None:
        file.append(b"first")
        file.append(b"0123456789")
        raise AssertionError("a dead process goes on")

    host.process.run(write)
    assert not host.running
    assert bytes(host.platter.names["a"].content) == b"first01234"


def test_a_kill_ends_background_work_and_call_backs(
    host: SimulatedHost, disk: SimulatedDisk
) -> None:
    seen: list[str] = []
    file = disk.open("a")
    file.append(b"x")
    disk.sync(file, lambda _: seen.append("synced"))
    disk.in_background(lambda: seen.append("worked"), lambda _r, _e: seen.append("told"))
    host.kill()
    host.world.run_for(10)
    assert seen == []
    host.boot()
    assert host.disk().read("a") == b"x"


def test_syncs_take_the_time_of_the_profile(host: SimulatedHost, disk: SimulatedDisk) -> None:
    file = disk.open("a")

    def time_of_a_sync() -> float:
        done: list[OSError | None] = []
        start = host.world.now
        disk.sync(file, done.append)
        assert host.world.run_for(30, lambda: bool(done))
        return host.world.now - start

    assert max(time_of_a_sync() for _ in range(20)) <= 0.01
    host.faults.set_profile(SLOW)
    slow = [time_of_a_sync() for _ in range(20)]
    assert min(slow) >= 0.01
    assert max(slow) > 0.2


def test_a_stuck_disk_holds_all_syncs_until_it_is_freed(
    host: SimulatedHost, disk: SimulatedDisk
) -> None:
    host.faults.set_profile(STUCK)
    file = disk.open("a")
    seen: list[int] = []
    for number in range(3):
        disk.sync(file, lambda _, number=number: seen.append(number))
    host.world.run_for(100)
    assert seen == []
    host.faults.set_profile(FAST)
    host.world.run_for(1)
    assert seen == [0, 1, 2]


def test_a_blocking_sync_on_the_loop_holds_up_the_loop(
    host: SimulatedHost, disk: SimulatedDisk
) -> None:
    host.faults.set_profile(SLOW)
    file = disk.open("a")
    seen: list[float] = []
    host.process.clock.call_soon(file.sync)
    host.process.clock.call_soon(lambda: seen.append(host.world.now))
    disk.in_background(file.sync, lambda _r, _e: None)
    host.world.run_for(5)
    assert seen[0] >= 0.01
    assert not host.process.waiting


def test_a_full_disk_takes_nothing_of_an_append_and_recovers(
    host: SimulatedHost, disk: SimulatedDisk
) -> None:
    file = disk.open("a")
    file.append(b"x" * 100)
    host.faults.capacity_bytes = 150
    assert disk.free_bytes() == 50
    for action in (
        lambda: file.append(b"y" * 51),
        lambda: disk.replace("b", b"y" * 51),
    ):
        with pytest.raises(OSError, match="No space") as caught:
            action()
        assert caught.value.errno == errno.ENOSPC
    assert disk.list("") == ["a"]
    assert file.size() == 100
    file.append(b"z" * 50)
    disk.unlink("a")
    disk.replace("b", b"y" * 51)
    host.faults.capacity_bytes = None
    assert disk.free_bytes() > 1 << 40


def test_a_failed_sync_loses_what_it_covered_and_is_never_repeated() -> None:
    for seed in range(20):
        host = a_host(seed)
        disk = host.disk()
        file = disk.open("a")
        disk.sync_folder("")
        file.append(b"safe")
        file.sync()
        file.append(b"lost")
        host.faults.fail("sync", skip=0)
        outcomes: list[OSError | None] = []
        disk.sync(file, outcomes.append)
        disk.sync(file, outcomes.append)
        host.world.run_for(10)
        assert [error.errno for error in outcomes if error is not None] == [errno.EIO] * 2
        assert disk.read("a") == b"safelost"
        if seed % 2:
            host.kill()
        else:
            host.lose_power()
        host.boot()
        assert host.disk().read("a") == b"safe"


@pytest.mark.parametrize(
    ("operation", "action"),
    [
        ("write", lambda d: d.open("a").append(b"x")),
        ("write", lambda d: d.open("a").truncate(0)),
        ("read", lambda d: d.read("a")),
        ("sync", lambda d: d.open("a").sync()),
        ("create", lambda d: d.open("new")),
        ("rename", lambda d: d.rename("a", "b")),
        ("unlink", lambda d: d.unlink("a")),
        ("sync_folder", lambda d: d.sync_folder("")),
        ("rename", lambda d: d.replace("a", b"x")),
    ],
)
def test_each_operation_can_fail_at_its_nth_time(
    host: SimulatedHost,
    disk: SimulatedDisk,
    operation: str,
    action: Callable[[SimulatedDisk], object],
) -> None:
    disk.replace("a", b"")
    host.faults.fail(operation, skip=0)
    with pytest.raises(OSError, match="simulated") as caught:
        action(disk)
    assert caught.value.errno == errno.EIO
    assert disk.list("") == ["a"]
    action(disk)


def test_a_fault_may_wait_and_may_last(host: SimulatedHost, disk: SimulatedDisk) -> None:
    disk.replace("a", b"x")
    host.faults.fail("read", skip=2, lasting=True)
    assert [disk.read("a"), disk.read("a")] == [b"x", b"x"]
    for _ in range(3):
        with pytest.raises(OSError, match="simulated"):
            disk.read("a")
    host.faults.heal()
    assert disk.read("a") == b"x"


def test_the_folder_belongs_to_one_living_process(host: SimulatedHost, disk: SimulatedDisk) -> None:
    disk.lock()
    other = SimulatedDisk(SimulatedProcess(host.world, 1), host.platter, host.faults)
    with pytest.raises(FolderInUseError):
        other.lock()
    disk.close()
    other.lock()
    other.close()


def test_what_an_operator_places_is_not_undone_by_a_loss_of_power() -> None:
    def write(disk: SimulatedDisk) -> None:
        file = disk.open("a")
        file.append(b"never synced")
        disk.open("b.part")
        disk.rename("b.part", "b")
        disk._platter.put("a", b"placed")
        disk._platter.cut("b", 0)
        disk.open("c")
        disk._platter.remove("c")

    for files in after_power_loss(write):
        left = dict(files)
        left.pop("b.part", None)
        assert left == {"a": b"placed", "b": b""}


def test_a_meddling_operator(host: SimulatedHost, disk: SimulatedDisk) -> None:
    disk.make_folder("x")
    disk.replace("x/a", b"\x00\x01")
    yesterday = host.platter.snapshot()
    host.platter.flip_bit("x/a", 1, bit=7)
    assert disk.read("x/a") == b"\x00\x81"
    host.lose_power()
    host.boot()
    disk = host.disk()
    assert disk.read("x/a") == b"\x00\x81"
    disk.open("x/b").append(b"new")
    host.platter.cut("x/a", 1)
    assert disk.read("x/a") == b"\x00"
    host.platter.restore(yesterday)
    assert disk.list("x") == ["a"]
    assert disk.read("x/a") == b"\x00\x01"
    host.platter.wipe()
    assert disk.list("x") == []
    with pytest.raises(FileNotFoundError):
        disk.open("x/a")
