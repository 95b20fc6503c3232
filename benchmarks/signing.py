"""What signed heads cost a change: the same load on controllers that sign and on such that don't.

    python -m benchmarks.signing [--rounds N] [--seconds S]

Rule: both clusters run all the time, and the load goes to them in turns, in changing order. What
counts is the ratio within a round, because the machine is noisier than the difference. Heads come
in some rounds only, so the mean of the middle half of all ratios counts, and no median. Exit 1 when
the processor time of a change grows by more than `MOST`.
"""

import argparse
import random
import statistics
import sys
import tempfile
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.peers.driving import Driver
from benchmarks.peers.services import Service

MOST: Final = 1.05
OUTSTANDING: Final = 64
_EACH_MS: Final = {"signing": 10_000, "not signing": 0}
"""`signed_head_ms`: the default, and no tree and no heads at all."""


def started(driver: Driver, folder: Path, every_ms: int) -> Service:
    """Start three controllers that ask for a head so often."""
    service = Service("logberg", folder)
    # The load's brokers are silent while the other cluster is measured, and shall not be fenced.
    settings = f"signed_head_ms = {every_ms}\nsession_ms = 300000\n"
    for file in folder.glob("controller-*.toml"):
        file.write_text(settings + file.read_text())
    service.start(driver.find_leader)
    return service


def signed_batches(service: Service) -> int:
    """Return how many batches are under the leader's newest signed head."""
    with urllib.request.urlopen(f"{service.endpoints[0]}/metrics", timeout=5) as reply:
        lines = reply.read().decode().splitlines()
    found = (line.split() for line in lines if line.startswith("logberg_signed_head_batches "))
    return next((int(float(value)) for _, value in found), 0)


def measure(rounds: int, seconds: float) -> tuple[list[float], list[float]]:
    """Return the ratios of processor time and of changes a second, signing over not signing."""
    driver, services = Driver(quick=False), {}
    cpu: list[float] = []
    rate: list[float] = []
    with tempfile.TemporaryDirectory(prefix="logberg-signing-") as folder:
        try:
            for name, every_ms in _EACH_MS.items():
                services[name] = started(driver, Path(folder) / name.replace(" ", "-"), every_ms)
            for number in range(rounds):
                order = list(services)[:: 1 if number % 2 else -1]
                got = {name: _round(driver, services[name], seconds) for name in order}
                signing, without = (got[name] for name in _EACH_MS)
                cpu.append(signing["cpu"] / without["cpu"])
                rate.append(signing["rate"] / without["rate"])
                print(
                    f"round {number + 1}: {signing['cpu']:.0f} and {without['cpu']:.0f} µs of "
                    f"processor time a change, {signing['rate']:,.0f} and {without['rate']:,.0f} "
                    "changes a second",
                    flush=True,
                )
            signed = {name: signed_batches(service) for name, service in services.items()}
        finally:
            for service in services.values():
                service.stop()
    if not signed["signing"] or signed["not signing"]:
        raise RuntimeError(f"the clusters do not do what they are measured for: {signed}")
    return cpu, rate


def _round(driver: Driver, service: Service, seconds: float) -> dict[str, float]:
    prefix = f"s-{random.getrandbits(32):08x}-"
    load = driver.load(
        service, "create", workers=OUTSTANDING, seconds=seconds, warm=1, prefix=prefix
    )
    return dict(load)


def _middle(of: Sequence[float]) -> float:
    """Return the mean of the middle half."""
    return statistics.mean(sorted(of)[len(of) // 4 : len(of) - len(of) // 4])


def _told(of: Sequence[float]) -> str:
    return f"{_middle(of):.3f} ({min(of):.3f} to {max(of):.3f})"


def main() -> int:
    """Measure, print, and judge."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.signing")
    parser.add_argument("--rounds", type=int, default=24)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each round and cluster")
    asked = parser.parse_args()
    cpu, rate = measure(asked.rounds, asked.seconds)
    print(f"signing over not signing, middle of {asked.rounds} rounds (smallest to largest):")
    print(f"  processor time of a change  {_told(cpu)}")
    print(f"  changes a second            {_told(rate)}")
    return 1 if _middle(cpu) > MOST else 0


if __name__ == "__main__":
    sys.exit(main())
