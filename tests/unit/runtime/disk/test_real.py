"""What only a real disk has: modes, the kernel's lock, full and broken disks, threads."""

import asyncio
import errno
import os
import resource
import signal
import stat
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from runtime.asyncio_clock import AsyncioClock
from runtime.disk.interface import FolderInUseError
from runtime.disk.real import RealDisk


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def run_python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_folders_and_files_are_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        disk = RealDisk(tmp_path / "node")
        disk.lock()
        disk.make_folder("x/y")
        disk.open("x/y/a").close()
        disk.replace("b", b"")
    finally:
        os.umask(before)
    assert {mode(tmp_path / "node" / p) for p in ("", "x", "x/y")} == {0o700}
    assert {mode(tmp_path / "node" / p) for p in (".lock", "x/y/a", "b")} == {0o600}
    disk.close()


def test_two_processes_cannot_have_one_folder(tmp_path: Path) -> None:
    disk = RealDisk(tmp_path)
    disk.lock()
    code = """
        import sys
        from runtime.disk.interface import FolderInUseError
        from runtime.disk.real import RealDisk
        try:
            RealDisk(sys.argv[1]).lock()
        except FolderInUseError as error:
            print(error)
            sys.exit(3)
    """
    refused = run_python(code, str(tmp_path))
    assert refused.returncode == 3, refused.stderr
    assert str(tmp_path) in refused.stdout
    assert f"process id {os.getpid()}" in refused.stdout
    assert "stop that process, or give this node a folder of its own" in refused.stdout
    disk.close()
    assert run_python(code, str(tmp_path)).returncode == 0


def test_a_killed_process_leaves_no_lock_behind(tmp_path: Path) -> None:
    killed = run_python(
        """
        import os, signal, sys
        from runtime.disk.real import RealDisk
        RealDisk(sys.argv[1]).lock()
        os.kill(os.getpid(), signal.SIGKILL)
        """,
        str(tmp_path),
    )
    assert killed.returncode == -signal.SIGKILL
    disk = RealDisk(tmp_path)
    disk.lock()
    disk.close()


def test_the_lock_file_cannot_be_named(tmp_path: Path) -> None:
    disk = RealDisk(tmp_path)
    disk.lock()
    with pytest.raises(ValueError, match=r"\.lock"):
        disk.unlink(".lock")
    assert disk.list("") == []
    disk.close()


def test_reading_needs_neither_lock_nor_clock_and_makes_nothing(tmp_path: Path) -> None:
    disk = RealDisk(tmp_path / "absent")
    assert disk.list("log") == []
    assert disk.free_bytes() > 0
    assert not (tmp_path / "absent").exists()
    with pytest.raises(AssertionError, match="without a clock"):
        disk.in_background(lambda: None, lambda _result, _error: None)


def test_a_symbolic_link_is_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret")
    (tmp_path / "node").mkdir()
    (tmp_path / "node" / "a").symlink_to(secret)
    disk = RealDisk(tmp_path / "node")
    for action in (disk.read, disk.open):
        with pytest.raises(OSError, match="symbolic links") as caught:
            action("a")
        assert caught.value.errno == errno.ELOOP


def test_a_short_write_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, bytes(data)[:7]))
    disk = RealDisk(tmp_path)
    file = disk.open("a")
    data = bytes(range(256))
    file.append(data)
    disk.replace("b", data)
    assert disk.read("a") == disk.read("b") == data
    assert file.size() == 256
    disk.close()


def test_on_a_full_disk_an_append_fails_whole_and_the_file_goes_on_later(tmp_path: Path) -> None:
    # A limit on the size of files stands in for a full disk: it cuts a write midway as well.
    code = """
        import resource, signal, sys
        from runtime.disk.real import RealDisk
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        disk = RealDisk(sys.argv[1])
        disk.lock()
        file = disk.open("a")
        file.append(b"x" * 900)
        disk.replace("b", b"old")
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
        for action in (lambda: file.append(b"y" * 200), lambda: disk.replace("b", b"y" * 2000)):
            try:
                action()
            except OSError as error:
                print(error.errno, file.size(), disk.size("a"), disk.read("b"), disk.list(""))
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        file.append(b"z" * 200)
        print(disk.read("a") == b"x" * 900 + b"z" * 200)
    """
    result = run_python(code, str(tmp_path))
    line = f"{errno.EFBIG} 900 900 b'old' ['a', 'b']"
    assert result.stdout.splitlines() == [line, line, "True"], result.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_a_really_full_file_system(tmp_path: Path) -> None:
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(tmp_path)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip("no tmpfs can be mounted here")
    try:
        disk = RealDisk(tmp_path / "node")
        disk.lock()
        file = disk.open("a")

        def fill() -> None:
            for _ in range(100):
                file.append(b"x" * 5000)

        with pytest.raises(OSError, match="No space left") as caught:
            fill()
        assert caught.value.errno == errno.ENOSPC
        assert file.size() == disk.size("a")
        assert file.size() % 5000 == 0
        assert disk.free_bytes() < 5000
        disk.close()
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_a_failed_sync_is_never_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def broken(fd: int) -> None:
        calls.append(fd)
        raise OSError(errno.EIO, "broken disk")

    disk = RealDisk(tmp_path)
    file = disk.open("a")
    monkeypatch.setattr(os, "fdatasync", broken)
    with pytest.raises(OSError, match="broken disk"):
        file.sync()
    monkeypatch.setattr(os, "fdatasync", calls.append)
    with pytest.raises(OSError, match="an earlier sync of this file failed"):
        file.sync()
    assert len(calls) == 1
    disk.close()


async def test_a_broken_disk_is_told_to_who_asked_for_the_sync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(fd: int) -> None:
        raise OSError(errno.EIO, "broken disk")

    monkeypatch.setattr(os, "fdatasync", broken)
    disk = RealDisk(tmp_path, AsyncioClock())
    outcome: asyncio.Future[OSError | None] = asyncio.get_running_loop().create_future()
    disk.sync(disk.open("a"), outcome.set_result)
    error = await outcome
    assert error is not None
    assert error.errno == errno.EIO
    disk.close()


async def test_work_runs_on_one_thread_and_calls_back_on_the_loop(tmp_path: Path) -> None:
    disk = RealDisk(tmp_path, AsyncioClock())
    threads: list[int] = []
    called_back: list[int] = []
    done = asyncio.Event()

    def on_done(result: object, error: OSError | None) -> None:
        called_back.append(threading.get_ident())
        if len(called_back) == 2:
            done.set()

    for _ in range(2):
        disk.in_background(lambda: threads.append(threading.get_ident()), on_done)
    await done.wait()
    assert len(set(threads)) == 1
    assert threads[0] != threading.get_ident()
    assert set(called_back) == {threading.get_ident()}
    disk.close()


async def test_closing_a_file_early_does_not_sync_another_that_took_its_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    may_go = threading.Event()

    def slow(fd: int) -> None:
        may_go.wait(10)
        synced.append(Path(f"/proc/self/fd/{fd}").readlink().name)

    monkeypatch.setattr(os, "fdatasync", slow)
    disk = RealDisk(tmp_path, AsyncioClock())
    done = asyncio.Event()
    first = disk.open("first")
    disk.sync(first, lambda _: done.set())
    first.close()
    disk.open("second")
    may_go.set()
    await done.wait()
    assert synced == ["first"]
    disk.close()


def test_replace_syncs_the_bytes_before_the_name_and_the_name_before_it_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = RealDisk(tmp_path)
    disk.replace("a", b"old")
    fsync = os.fsync
    synced: list[tuple[str, bytes]] = []

    def watched(fd: int) -> None:
        synced.append((Path(f"/proc/self/fd/{fd}").readlink().name, disk.read("a")))
        fsync(fd)

    monkeypatch.setattr(os, "fsync", watched)
    disk.replace("a", b"new")
    assert synced == [("a.part", b"old"), (tmp_path.name, b"new")]


def test_new_folders_are_synced_into_the_folders_above_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = RealDisk(tmp_path)
    synced: list[str] = []
    monkeypatch.setattr(
        os,
        "fsync",
        lambda fd: synced.append(Path(f"/proc/self/fd/{fd}").readlink().name),
    )
    disk.make_folder("x/y")
    disk.make_folder("x/y")
    assert synced == [tmp_path.name, "x"]


async def test_close_waits_for_background_work(tmp_path: Path) -> None:
    disk = RealDisk(tmp_path, AsyncioClock())
    may_end, ended = threading.Event(), threading.Event()

    def work() -> None:
        may_end.wait(10)
        ended.set()

    disk.in_background(work, lambda _result, _error: None)
    threading.Timer(0.05, may_end.set).start()
    disk.close()
    assert ended.is_set()


def test_a_defect_in_background_work_stops_the_process_loudly(tmp_path: Path) -> None:
    stopped = run_python(
        """
        import asyncio, sys
        from runtime.asyncio_clock import AsyncioClock
        from runtime.disk.real import RealDisk
        async def main():
            disk = RealDisk(sys.argv[1], AsyncioClock())
            disk.in_background(lambda: 1 // 0, lambda result, error: None)
            await asyncio.sleep(30)
        asyncio.run(main())
        """,
        str(tmp_path),
    )
    assert stopped.returncode == 70
    assert "a defect stops this process" in stopped.stderr
    assert "ZeroDivisionError" in stopped.stderr


def test_without_file_handles_an_open_fails_and_later_works(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    disk = RealDisk(tmp_path)
    lowest = os.open(os.devnull, os.O_RDONLY)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, hard))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            disk.open("a")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    disk.open("a").append(b"x")
    disk.close()


def test_a_folder_cannot_stand_where_a_file_is(tmp_path: Path) -> None:
    (tmp_path / "node").write_bytes(b"")
    with pytest.raises(OSError, match=r"(?i)not a directory|a file stands"):
        RealDisk(tmp_path / "node").lock()


def test_the_message_for_a_taken_folder_works_without_a_process_id(tmp_path: Path) -> None:
    first, second = RealDisk(tmp_path), RealDisk(tmp_path)
    first.lock()
    os.truncate(tmp_path / ".lock", 0)
    with pytest.raises(FolderInUseError, match="in use by another process: stop"):
        second.lock()
    first.close()
