"""`python -m tests.kills`: kill leaders of a real cluster under load, and judge what is left.

Three controllers and three agents with TLS on loopback, as `logberg up` starts them. Ends when
`--count` leaders were killed, or after `--minutes`; says what was found; exit 1 when anything
that was acknowledged is missing, doubled or elsewhere, when logs differ, or a broker was fenced.
"""

import argparse
import asyncio
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.quorum.failover import settled
from logberg.client.client import LogbergClient
from logberg.local.local_cluster import LocalCluster
from logberg.local.ports import free_port_base
from metadata.messages.quorum import StatusReply
from tests.evidence.pieces import percentiles, write_piece
from tests.kills.histogram import histogram
from tests.kills.judge import Ledger, Verdict, judge
from tests.kills.killing import Kill, Killer
from tests.kills.load import CLIENTS, Load


class Run:
    """One run: a cluster, its load, and the kills."""

    def __init__(self, folder: Path, count: int, minutes: float, seed: int) -> None:
        self.cluster = LocalCluster(folder, 3, 3, free_port_base())
        self.cluster.prepare()
        self.access = self.cluster.file.access()
        self.load = Load(self.cluster.controller_urls, self.access, seed)
        self.kills: list[Kill] = []
        self._count = count
        self._until = time.monotonic() + 60 * minutes
        self._seed = seed

    async def run(self) -> tuple[Verdict, Ledger]:
        """Kill, then judge."""
        try:
            for child in self.cluster.children:
                child.start()
            async with LogbergClient(self.cluster.controller_urls, self.access) as client:
                await settled(self.cluster, client)
                self.load.start()
                await self._kill(client)
                await self.load.stop()
                active = await settled(self.cluster, client)
                url = self.cluster.controller_url(active)
                end = (await client.from_one(url, "/v1/status", StatusReply)).log_end
        finally:
            self.load.abandon()
            await asyncio.to_thread(self.cluster.stop)
        folders = [self.cluster.folder / f"controller-{n}" for n in self.cluster.controllers]
        return judge(self.load.acknowledged, folders, end)

    async def _kill(self, client: LogbergClient) -> None:
        killer = Killer(self.cluster, client, self.load, self._seed)
        self.kills = killer.kills
        turn = 0
        while self._killed < self._count and time.monotonic() < self._until:
            await killer.turn(turn)
            turn += 1
            if turn % 10 == 0:
                self._tell(killer)

    @property
    def _killed(self) -> int:
        return sum(kill.kind == "kill" for kill in self.kills)

    def _tell(self, killer: Killer) -> None:
        at = percentiles(killer.samples()["kill"])
        print(
            f"  {self._killed} of {self._count} leaders killed; next commit after {at['p50']:.0f} "
            f"ms, at worst {at['max']:.0f}; {len(self.load.acknowledged):,} acknowledged",
            file=sys.stderr,
            flush=True,
        )


def in_office(kills: list[Kill], ledger: Ledger) -> list[Kill]:
    """Those that ended a leader: no later epoch had begun by then, says the log."""
    return [
        kill
        for kill in kills
        if min(ms for epoch, ms in ledger.began_ms.items() if epoch > kill.epoch) >= kill.at_ms
    ]


def figures(run: Run, kills: list[Kill], verdict: Verdict) -> dict[str, Any]:
    """What the run measured."""
    samples = {
        kind: [round(kill.took_ms, 1) for kill in kills if kill.kind == kind]
        for kind in ("kill", "paused", "second")
    }
    return {
        "kills": len(samples["kill"]),
        "by_kind": {kind: len(found) for kind, found in samples.items()},
        "not_in_office": len(run.kills) - len(kills),
        "acknowledged": len(run.load.acknowledged),
        "tries": run.load.tries,
        "read_back": run.load.read_back,
        "missing": len(verdict.missing),
        "doubled": len(verdict.doubled),
        "misplaced": len(verdict.misplaced),
        "unsound": verdict.unsound,
        "fenced": verdict.fenced,
        "next_commit_ms": percentiles(samples["kill"]),
        "samples_ms": samples["kill"],
        "paused_ms": samples["paused"],
        "second_ms": samples["second"],
    }


def in_words(found: dict[str, Any], took_s: float) -> str:
    """Return the figures as lines for people."""
    wrong = ", ".join(f"{what} {found[what]}" for what in ("missing", "doubled", "misplaced"))
    wrong += f", brokers fenced {found['fenced']}"
    kinds = ", ".join(f"{kind} {count}" for kind, count in found["by_kind"].items())
    lines = [
        f"{found['kills']} leaders killed under load of {CLIENTS} clients in {took_s:.0f} s",
        f"by kind: {kinds}; not in office any more: {found['not_in_office']}",
        f"asked {found['tries']:,} times",
        f"acknowledged {found['acknowledged']:,}, read back {found['read_back']:,}",
        wrong,
    ]
    for name, what in (
        ("samples_ms", "kill to the next commit"),
        ("paused_ms", "stop to the next commit"),
        ("second_ms", "second kill, without a majority, to the next commit"),
    ):
        if found[name]:
            at = ", ".join(f"{q} {ms:.0f} ms" for q, ms in percentiles(found[name]).items())
            lines += [f"{what}: {at}", histogram(found[name])]
    return "\n".join(lines)


def main() -> int:
    """Run, say, record."""
    parser = argparse.ArgumentParser(prog="python -m tests.kills")
    parser.add_argument("--count", type=int, default=20, help="leaders to kill")
    parser.add_argument("--minutes", type=float, default=60.0, help="end after so long")
    parser.add_argument("--seed", type=int, default=1, help="of clients' and killer's dice")
    parser.add_argument("--folder", type=Path, help="keep the cluster's folder here")
    parser.add_argument("--record", type=Path, help="write a piece of evidence there")
    asked = parser.parse_args()
    if asked.folder is not None and asked.folder.exists():
        parser.error(f"{asked.folder} is there already; name one that isn't")
    began = time.monotonic()
    folder = asked.folder or Path(tempfile.mkdtemp(prefix="logberg-kills-")) / "cluster"
    run = Run(folder, asked.count, asked.minutes, asked.seed)
    try:
        verdict, ledger = asyncio.run(run.run())
    except BaseException:
        print(f"{len(run.kills)} kills; what is left is in {folder}", file=sys.stderr)
        raise
    found = figures(run, in_office(run.kills, ledger), verdict)
    took_s = time.monotonic() - began
    print(in_words(found, took_s))
    for problem in verdict.problems[:20]:
        print(f"  {problem}")
    if verdict.problems:
        print(f"  the cluster's folder: {folder}")
    elif asked.folder is None:
        shutil.rmtree(folder.parent)
    if asked.record is not None:
        print(write_piece(asked.record, "kills", found, took_s))
    return 1 if verdict.problems else 0


if __name__ == "__main__":
    sys.exit(main())
