"""Runs the load generator, a program in Go, on one service, and reads what it measured."""

import random
import subprocess
import sys
from collections.abc import Mapping
from typing import Final

import msgspec

from benchmarks.peers import tools
from benchmarks.peers.services import Service

_MOST_S: Final = 900


class LoadError(Exception):
    """A row could not be measured; the message is the load generator's."""


class Driver:
    """The load generator, with the lengths of a usual run or of a quick one."""

    def __init__(self, *, quick: bool) -> None:
        """Build it if need be. Raises NoToolError."""
        self._program = str(tools.go_program("load"))
        self._quick = quick
        self.entries = 20_000 if quick else 1_000_000

    def seconds(self, usual: float) -> float:
        """How long something is measured."""
        return usual / 4 if self._quick else usual

    def count(self, usual: int) -> int:
        """How often something is tried."""
        return 1 if self._quick else usual

    def load(self, service: Service, work: str, **options: float | str) -> Mapping[str, float]:
        """Let it do one kind of work. Raises LoadError."""
        if self._quick:
            options = {**options, "seconds": 1, "warm": 0.5}
            options["count"] = min(int(options.get("count", 3)), self.entries)
            options["workers"] = min(int(options.get("workers", 1)), 200)
        pids = ",".join(map(str, service.pids))
        flags = [f"-{name}={value}" for name, value in {"warm": 3, **options}.items()]
        done = self._run(service.name, work, service.endpoints, [f"-pids={pids}", *flags])
        if done.returncode != 0:
            raise LoadError(f"{service.name}, {work}: {done.stderr.strip()[-500:]}")
        return {
            name: float(value)
            for name, value in msgspec.json.decode(done.stdout).items()
            if isinstance(value, int | float)
        }

    def joined_load(self, service: Service, workers: int, seconds: float) -> Mapping[str, float]:
        """Let our own client create entries. Raises LoadError."""
        options = {
            "urls": ",".join(service.endpoints),
            "pids": ",".join(map(str, service.pids)),
            "workers": str(workers),
            "seconds": str(self.seconds(seconds)),
            "warm": "0.5" if self._quick else "3",
            "prefix": f"j{workers}-{random.getrandbits(32):08x}-",
        }
        done = subprocess.run(
            [
                *(sys.executable, "-m", "benchmarks.peers.joined_load"),
                *(f"--{name}={value}" for name, value in options.items()),
            ],
            capture_output=True,
            text=True,
            check=False,
            timeout=_MOST_S,
        )
        if done.returncode != 0:
            raise LoadError(f"{service.name}, our client: {done.stderr.strip()[-500:]}")
        return {
            name: float(value)
            for name, value in msgspec.json.decode(done.stdout).items()
            if isinstance(value, int | float)
        }

    def find_leader(self, service: str, endpoints: list[str]) -> int | None:
        """Return the number of the endpoint that leads, or None."""
        try:
            done = self._run(service, "leader", endpoints, [], most_s=5)
        except subprocess.TimeoutExpired:
            return None
        return int(msgspec.json.decode(done.stdout)["leader"]) if done.returncode == 0 else None

    def _run(
        self,
        service: str,
        work: str,
        endpoints: list[str],
        flags: list[str],
        most_s: float = _MOST_S,
    ) -> subprocess.CompletedProcess[str]:
        command = [self._program, f"-target={service}", f"-work={work}"]
        return subprocess.run(
            [*command, f"-endpoints={','.join(endpoints)}", *flags],
            capture_output=True,
            text=True,
            check=False,
            timeout=most_s,
        )
