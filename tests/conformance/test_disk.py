"""What every disk promises to the cores: `runtime.disk.interface`, sentence by sentence."""

import pytest

from runtime.disk.interface import Disk, FolderInUseError
from tests.conformance.disk_kits import DiskKit


def test_a_new_folder_is_empty(disk: Disk) -> None:
    assert disk.list("") == []
    assert disk.list("absent") == []
    assert not disk.exists("absent")
    assert disk.free_bytes() > 0


def test_appended_bytes_are_read_back_at_once(disk: Disk) -> None:
    file = disk.open("a")
    file.append(b"hello ")
    file.append(b"world")
    assert file.name == "a"
    assert file.size() == disk.size("a") == 11
    assert disk.read("a") == b"hello world"


@pytest.mark.parametrize(
    ("position", "length", "expected"),
    [
        (0, None, b"0123456789"),
        (3, 4, b"3456"),
        (8, 100, b"89"),
        (10, None, b""),
        (99, 1, b""),
        (2, 0, b""),
    ],
)
def test_a_read_gives_at_most_what_is_there(
    disk: Disk, position: int, length: int | None, expected: bytes
) -> None:
    disk.open("a").append(b"0123456789")
    assert disk.read("a", position, length) == expected


def test_opening_again_appends_behind_what_is_there(disk: Disk) -> None:
    first = disk.open("a")
    first.append(b"one")
    first.close()
    second = disk.open("a")
    assert second.size() == 3
    second.append(b"two")
    assert disk.read("a") == b"onetwo"


def test_after_a_cut_the_next_append_stands_at_the_new_end(disk: Disk) -> None:
    file = disk.open("a")
    file.append(b"0123456789")
    file.truncate(4)
    assert file.size() == disk.size("a") == 4
    file.append(b"x")
    assert disk.read("a") == b"0123x"


def test_an_empty_append_changes_nothing(disk: Disk) -> None:
    file = disk.open("a")
    file.append(b"")
    assert disk.read("a") == b""
    assert disk.list("") == ["a"]


def test_a_file_that_is_absent_is_not_found(disk: Disk) -> None:
    for action in (disk.read, disk.size, disk.unlink):
        with pytest.raises(FileNotFoundError):
            action("absent")
    with pytest.raises(FileNotFoundError):
        disk.rename("absent", "b")


def test_a_file_cannot_be_opened_in_a_folder_that_is_absent(disk: Disk) -> None:
    with pytest.raises(FileNotFoundError):
        disk.open("absent/a")


def test_folders_nest_and_list_only_their_own_files_in_order(disk: Disk) -> None:
    disk.make_folder("x/y")
    disk.make_folder("x/y")
    for name in ("x/b", "x/a", "x/y/deep", "top"):
        disk.open(name).append(name.encode())
    assert disk.list("x") == ["a", "b"]
    assert disk.list("x/y") == ["deep"]
    assert disk.list("") == ["top"]


def test_a_rename_goes_over_what_was_there(disk: Disk) -> None:
    disk.open("a").append(b"new")
    disk.open("b").append(b"old")
    disk.rename("a", "b")
    assert disk.list("") == ["b"]
    assert disk.read("b") == b"new"


def test_an_open_file_may_be_renamed_and_keeps_growing(disk: Disk) -> None:
    file = disk.open("a.part")
    file.append(b"one")
    disk.rename("a.part", "a")
    file.append(b"two")
    assert disk.read("a") == b"onetwo"


def test_an_unlinked_file_is_gone_and_its_name_is_free(disk: Disk) -> None:
    disk.open("a").append(b"old")
    disk.unlink("a")
    assert not disk.exists("a")
    assert disk.open("a").size() == 0


def test_replace_writes_a_whole_file_and_leaves_nothing_beside(disk: Disk) -> None:
    disk.replace("a", b"one")
    disk.replace("a", b"twelve")
    assert disk.read("a") == b"twelve"
    assert disk.list("") == ["a"]


def test_what_was_appended_survives_a_kill_without_a_sync(disk: Disk, disk_kit: DiskKit) -> None:
    file = disk.open("a")
    file.append(b"0123456789")
    file.truncate(7)
    after = disk_kit.restart()
    after.lock()
    assert after.read("a") == b"0123456"


@pytest.mark.parametrize(
    "name",
    ["", "/etc/passwd", "..", "../a", "x/../../a", "./a", "x//a", "x/", "a\x00b", "a\nb", "a\\b"],
)
def test_a_name_that_could_leave_the_folder_is_refused(disk: Disk, name: str) -> None:
    disk.make_folder("x")
    for action in (disk.open, disk.read, disk.exists, disk.size, disk.unlink):
        with pytest.raises(ValueError, match=r"path|character"):
            action(name)
    with pytest.raises(ValueError, match=r"path|character"):
        disk.replace(name, b"")
    with pytest.raises(ValueError, match=r"path|character"):
        disk.rename("a", name)


def test_a_sync_calls_back_later_and_without_an_error(disk: Disk, disk_kit: DiskKit) -> None:
    file = disk.open("a")
    file.append(b"x")
    outcomes: list[OSError | None] = []
    disk.sync(file, outcomes.append)
    assert outcomes == []
    disk_kit.settle(lambda: bool(outcomes))
    assert outcomes == [None]


def test_syncs_and_background_work_finish_in_the_order_of_their_calls(
    disk: Disk, disk_kit: DiskKit
) -> None:
    one, two = disk.open("one"), disk.open("two")
    seen: list[str] = []
    disk.sync(one, lambda _: seen.append("sync one"))
    disk.in_background(lambda: "work", lambda result, _: seen.append(str(result)))
    disk.sync(two, lambda _: seen.append("sync two"))
    disk.sync(one, lambda _: seen.append("sync one again"))
    disk_kit.settle(lambda: len(seen) == 4)
    assert seen == ["sync one", "work", "sync two", "sync one again"]


def test_a_file_may_be_closed_while_its_sync_is_under_way(disk: Disk, disk_kit: DiskKit) -> None:
    outcomes: list[OSError | None] = []
    for number in range(20):
        file = disk.open(f"file-{number}")
        file.append(b"x" * 1000)
        disk.sync(file, outcomes.append)
        file.close()
    disk_kit.settle(lambda: len(outcomes) == 20)
    assert outcomes == [None] * 20


def test_background_work_may_use_the_disk(disk: Disk, disk_kit: DiskKit) -> None:
    def work() -> bytes:
        disk.make_folder("x")
        file = disk.open("x/a")
        file.append(b"from behind")
        file.sync()
        file.close()
        disk.sync_folder("x")
        disk.replace("x/b", b"replaced")
        return disk.read("x/a") + b" " + disk.read("x/b")

    results: list[tuple[bytes | None, OSError | None]] = []
    disk.in_background(work, lambda result, error: results.append((result, error)))
    disk_kit.settle(lambda: bool(results))
    assert results == [(b"from behind replaced", None)]


def test_an_error_of_the_system_in_background_work_is_handed_back(
    disk: Disk, disk_kit: DiskKit
) -> None:
    results: list[tuple[bytes | None, OSError | None]] = []
    disk.in_background(
        lambda: disk.read("absent"), lambda result, error: results.append((result, error))
    )
    disk_kit.settle(lambda: bool(results))
    [(result, error)] = results
    assert result is None
    assert isinstance(error, FileNotFoundError)


def test_a_folder_has_one_process_at_a_time(disk: Disk, disk_kit: DiskKit) -> None:
    second = disk_kit.another_process()
    with pytest.raises(FolderInUseError, match="in use by another process"):
        second.lock()
    disk.open("a").append(b"the first goes on")
    assert disk.read("a") == b"the first goes on"


def test_a_folder_is_free_again_when_its_process_ends(disk: Disk, disk_kit: DiskKit) -> None:
    after = disk_kit.restart()
    after.lock()


def test_close_finishes_background_work_first(disk: Disk, disk_kit: DiskKit) -> None:
    disk.in_background(lambda: disk.replace("a", b"done"), lambda _result, _error: None)
    after = disk_kit.restart()
    after.lock()
    assert after.read("a") == b"done"
