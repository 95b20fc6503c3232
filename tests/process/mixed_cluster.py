"""A cluster of real processes in which some are of an old release and some of this build.

Rule: the old release makes the folder, so configuration files, certificates and cluster.json are
those that its users have; what begins as this build has a new folder, and its file says whether
rights count. A process changes its build while it is stopped; its folder stays.
"""

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from logberg.local.child import Child
from logberg.local.issued_tokens import ADMIN
from logberg.local.local_cluster import LocalCluster, Timing
from logberg.local.ports import free_port_base
from metadata.features import BASE, LOGBERG_VERSION, METADATA_VERSION, SUPPORTED
from tests.process.running_cluster import RunningCluster, Said
from tests.releases.old_release import OLD, command_of, python_of

NEW = "this build"
_RIGHTS = 'authorization = "off"'
_PREPARE = """
import sys
from pathlib import Path
from quorate.local_cluster import LocalCluster, Timing
folder, controllers, brokers, port_base, session_ms = sys.argv[1:]
timing = Timing(int(session_ms), int(session_ms) // 6)
LocalCluster(Path(folder), int(controllers), int(brokers), int(port_base), timing).prepare()
"""


class MixedCluster(RunningCluster):
    """`old` names the processes that begin as the old release: controller-1, broker-2."""

    def __init__(
        self,
        folder: Path,
        controllers: int,
        brokers: int,
        *,
        old: tuple[str, ...],
        session_ms: int = 3_000,
    ) -> None:
        numbers = [controllers, brokers, free_port_base(), session_ms]
        subprocess.run(
            [*python_of(), "-c", _PREPARE, str(folder), *map(str, numbers)], check=True, timeout=60
        )
        timing = Timing(session_ms, session_ms // 6)
        self.local = LocalCluster(folder, timing=timing)
        self.folder = self.local.folder
        self.acknowledged: list[str] = []
        self.timeout_s = 20.0
        self.token = (self.folder / "admin.token").read_text().strip()
        self._tokens = {self.token: ADMIN}
        self.carriers: dict[str, str] = {}
        self.builds: dict[str, str] = {}
        for child in self.local.children:
            self.run_as(child, OLD if child.name in old else NEW)
            if child.name not in old:
                self._say_of(child.name, _RIGHTS)
        if any(name.startswith("broker") for name in old):
            self.begin_at(BASE)

    def begin_at(self, levels: Mapping[str, int]) -> None:
        """Let controllers of this build begin the log at these levels, as for agents of 0.1."""
        for name, build in self.builds.items():
            if build == NEW and name.startswith("controller"):
                table = ", ".join(f'"{feature}" = {level}' for feature, level in levels.items())
                self._say_of(name, f"initial_features = {{ {table} }}")

    def _say_of(self, name: str, line: str) -> None:
        """Add to the file of a process what the old release doesn't know."""
        path = self.folder / "config" / f"{name}.toml"
        path.write_text(f"{line}\n{path.read_text()}")

    def run_as(self, child: Child, build: str) -> None:
        """Run a process as another build from its next start on."""
        assert not child.running
        arguments = child._arguments[child._arguments.index("-m") + 2 :]
        command = [sys.executable, "-m", "logberg"] if build == NEW else command_of(build)
        child._arguments = [*command, *arguments]
        self.builds[child.name] = build
        path = self.folder / "config" / f"{child.name}.toml"
        if build == OLD and (text := path.read_text()).startswith(_RIGHTS):
            # The old release refuses what it doesn't know.
            path.write_text(text.removeprefix(f"{_RIGHTS}\n"))

    def restart_as(self, child: Child, build: str) -> None:
        """Stop a process in order, change its build, start it, and wait until all is well."""
        child.signal(signal.SIGTERM)
        assert child.wait(20.0), f"{child.name} did not stop"
        assert child.exit_code == 0, child.obituary()
        self.run_as(child, build)
        child.start()
        self.until(self.settled, f"{child.name} is back as {build}")
        self.until(self.caught_up, f"{child.name} has caught up as {build}")

    def raise_levels(self) -> bool:
        """Finalise the newest levels. Whether it was done."""
        levels = [f"{name}={SUPPORTED[name].high}" for name in (METADATA_VERSION, LOGBERG_VERSION)]
        return self.command("features", "upgrade", *levels, "--data", str(self.folder)).code == 0

    def broker_epochs(self) -> dict[int, int]:
        """By broker id; a new epoch means that an agent registered anew."""
        brokers = self.ask(self.url(self.leader()), "GET", "/v1/brokers").body["brokers"]
        return {broker["brokerId"]: broker["brokerEpoch"] for broker in brokers}

    def said_by_agents(self) -> dict[int, str | None]:
        """Return the release that each agent reported to the leader, by broker id."""
        brokers = self.ask(self.url(self.leader()), "GET", "/v1/brokers").body["brokers"]
        return {broker["brokerId"]: broker.get("software") for broker in brokers}

    def said_by(self, name: str, words: str) -> list[str]:
        """The lines of a process's output that contain some words."""
        return [line for line in self.output(name).splitlines() if words in line]

    def old_command(self, *arguments: str) -> Said:
        """Run a command of the old release's command line on this cluster."""
        done = subprocess.run(
            [*command_of(), *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            cwd=self.folder,
        )
        return Said(done.returncode, done.stdout, done.stderr)


class Load:
    """Creates topics all the time, and looks at the brokers' states, each on a thread."""

    def __init__(self, cluster: MixedCluster) -> None:
        self._cluster = cluster
        self._done = threading.Event()
        self._threads = [
            threading.Thread(target=self._until_done, args=(act,), daemon=True)
            for act in (self._create, self._look)
        ]
        self.seen: set[tuple[int, str]] = set()
        self.failed: list[BaseException] = []

    def _create(self) -> None:
        self._cluster.create(f"load-{len(self._cluster.acknowledged)}")

    def _look(self) -> None:
        with suppress(OSError):
            self.seen |= set(self._cluster.broker_states().items())

    def _until_done(self, act: Any) -> None:
        while not self._done.wait(0.1):
            try:
                act()
            except BaseException as error:  # noqa: BLE001 - raised again by the test's own thread
                self.failed.append(error)
                return

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        for thread in self._threads:
            thread.join()
        if self.failed:
            raise self.failed[0]


@contextmanager
def mixed(
    folder: Path, controllers: int = 3, brokers: int = 0, *, old: tuple[str, ...]
) -> Iterator[MixedCluster]:
    """A started cluster; nothing of it is left running."""
    cluster = MixedCluster(folder, controllers, brokers, old=old)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.kill()
