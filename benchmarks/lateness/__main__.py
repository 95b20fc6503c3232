"""`make lateness` checks that no request makes a long slice of work on a large state.

It builds a cluster of real processes with 1,000,000 partitions and runs every load of
`benchmarks.lateness.loads`. With `--with-broker` each process is also a broker's agent, on the same
loop, and the agents' listeners for Kafka's protocol are measured instead of the controllers'. For
each load it prints, for the worst of the three controllers, the processor time of a slice at p99.9
and at worst, and the lateness of the loop in wall-clock time, which has no limit. Exit 1 if a slice
took longer than 20 ms at p99.9 or 50 ms at worst, if the leader's epoch changed, or if no load
covers a route, a record, or an api key that a listener for Kafka's protocol serves.

--partitions N  how many partitions (1000000)
--seconds S     how long each load lasts (3)
--with-broker   each controller is a broker's agent too (combined mode)
--only TEXT     only loads whose name contains TEXT; then coverage isn't checked
--name          the controllers' logs name every callback that takes more than 20 ms
--json FILE     write the table to FILE
--folder DIR    folder of the cluster; it is kept
"""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from benchmarks.instruments.cluster import CombinedNodes, Controllers
from benchmarks.instruments.slices import Cost, read
from benchmarks.lateness.coverage import not_driven, not_sent
from benchmarks.lateness.kafka_loads import AGENT, CONTROLLER, served
from benchmarks.lateness.load import Load
from benchmarks.lateness.loads import LOADS
from benchmarks.lateness.stage import Stage, stage

P999_MS, WORST_MS = 20.0, 50.0


class Row(NamedTuple):
    """One line of the table."""

    load: str
    cost: Cost
    epoch_changed: bool
    problem: str

    @property
    def met(self) -> bool:
        """The bounds hold."""
        cost = self.cost
        within = cost.cpu_p999_ms <= P999_MS and cost.cpu_worst_ms <= WORST_MS
        return within and not self.epoch_changed and not self.problem


async def measure(on: Stage, load: Load) -> Row:
    """Run one load."""
    epoch = await on.find_leader()
    before = await read(on.controllers)
    problem = ""
    try:
        async with asyncio.timeout(max(120.0, 4 * on.seconds)):
            await load.run(on)
    except Exception as error:  # noqa: BLE001 - the others are measured all the same
        problem = f"{type(error).__name__}: {error}"[:200]
    await asyncio.sleep(0.2)
    cost = (await read(on.controllers)).since(before)
    return Row(load.name, cost, await on.find_leader() != epoch, problem)


async def _run(arguments: argparse.Namespace, folder: Path) -> tuple[list[Row], list[str]]:
    """Run all loads. Returns the rows, and the requests of Kafka's protocol that none sends."""
    rows = []
    listeners = (AGENT,) if arguments.with_broker else (CONTROLLER,)
    started = time.monotonic()
    settings = {"name_long_callbacks": True} if arguments.name else {}
    nodes = CombinedNodes if arguments.with_broker else Controllers
    async with stage(folder, arguments.partitions, nodes, **settings) as on:
        on.seconds = arguments.seconds
        status = await on.json("/v1/status")
        print(
            f"{status['partitions']:,} partitions of {status['topics']:,} topics, made in "
            f"{time.monotonic() - started:.0f} s\n\n{'load':<52}{'p99.9 ms':>9}{'worst ms':>9}"
            f"{'late ms':>9}",
            flush=True,
        )
        for load in LOADS:
            if arguments.only and not any(text in load.name for text in arguments.only):
                continue
            if any(listener not in listeners for listener, _ in load.kafka):
                continue
            row = await measure(on, load)
            rows.append(row)
            print("\n".join([_line(row), *(f"  {note}" for note in on.notes)]), flush=True)
            on.notes.clear()
        if arguments.name:
            _name_long(on.controllers.log_events("callback_long"))
        missing = not_sent({listener: await served(on, listener) for listener in listeners})
    return rows, missing


def _name_long(events: list[dict[str, Any]]) -> None:
    """Print which callbacks were long, how often, and the longest of each."""
    found: dict[str, list[float]] = {}
    for event in events:
        found.setdefault(event["callback"], []).append(event["seconds"])
    for name, seconds in sorted(found.items(), key=lambda item: -max(item[1])):
        print(f"  {name}: {len(seconds)} times over 20 ms, the longest {max(seconds) * 1e3:.0f} ms")


def _line(row: Row) -> str:
    cost = row.cost
    words = [] if row.met else ["MISSED"]
    words += ["another epoch"] if row.epoch_changed else []
    words += [row.problem] if row.problem else []
    return (
        f"{row.load:<52}{cost.cpu_p999_ms:>9.1f}{cost.cpu_worst_ms:>9.1f}"
        f"{cost.late_worst_ms:>9.1f}  {'; '.join(words)}"
    )


def main() -> int:
    """Measure; exit 1 when a bound is missed."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.lateness", description="Drive every route, and judge slices."
    )
    parser.add_argument("--partitions", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--with-broker", action="store_true", help="measure combined mode")
    parser.add_argument("--only", action="append", metavar="TEXT")
    parser.add_argument("--name", action="store_true", help="name long callbacks")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="logberg-lateness-") as temporary:
        if arguments.folder is not None:
            arguments.folder.mkdir(parents=True, exist_ok=True)
        rows, not_asked = asyncio.run(_run(arguments, arguments.folder or Path(temporary)))
    if arguments.json is not None:
        arguments.json.write_bytes(msgspec.json.format(msgspec.json.encode(rows)))
    missing = [] if arguments.only else not_driven() + not_asked
    for one in missing:
        print(f"not driven: {one}")
    return 1 if missing or not all(row.met for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
