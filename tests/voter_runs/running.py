"""One run: a cluster of one voter becomes three, five and three again, under load and kills.

Each change of the voters is asked for by a client. While it is under way a controller gets SIGKILL,
the leader in about half of the cases where `victims` allows it. It starts again a moment later, and
the next change begins when every controller holds what is committed.
"""

import asyncio
import random
import signal
import time
import tomllib
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

from logberg.client.client import LogbergClient
from logberg.client.client_errors import ClientError
from logberg.client.cluster_view import is_leaders, observe
from logberg.commands.quorum_view import view_of
from logberg.local.local_cluster import LocalCluster
from logberg.local.ports import free_port_base
from logberg.local.toml_text import to_toml
from metadata.errors import ErrorCode
from metadata.messages.quorum import QuorumReply, StatusReply, VoterAction
from tests.kills.judge import Verdict, judge
from tests.kills.load import Load, LoadError
from tests.voter_runs.pauses import longest_within
from tests.voter_runs.victims import may_be_killed

NODES = 5
SIZES = (3, 5, 3)
_LIMIT_S = 60.0
_LOOK_S = 0.05
_ASK_S = 5.0
_MOMENTS_S = {VoterAction.ADD: (0.5, 1.2, 2.0), VoterAction.REMOVE: (0.002, 0.006, 0.02)}
"""Within these times of the request a controller is killed; one is drawn for each change. A new
controller starts, catches up and keeps up for an election timeout. A removal takes milliseconds."""
_DOWN_S = (0.1, 0.8)
CLIENTS, JOINING = 4, 2


class ChangeMade(NamedTuple):
    """One change of the voters, and the kill during it."""

    action: str
    node_id: int
    voters_before: int
    victim: int
    victim_led: bool
    under_way: bool
    """Whether the change had not been answered when the victim was killed."""
    took_s: float
    refused: Counter[str]
    """How often it was refused or not answered, by code, before it was made."""
    pause_s: float
    """The longest between two acknowledged writes, until the victim was back."""


class RunResult(NamedTuple):
    """What one run came to."""

    seed: int
    took_s: float
    acknowledged: int
    epochs: int
    """How many leaders wrote."""
    changes: list[ChangeMade]
    pause_s: float
    """The longest of the whole run."""
    verdict: Verdict


class VoterRun:
    """One cluster in an empty folder."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._cluster = LocalCluster(folder, NODES, 1, free_port_base())
        self._cluster.prepare()
        _know_only_itself(folder / "config" / "controller-1.toml")
        self._urls = tuple(self._cluster.controller_urls)
        self._access = self._cluster.file.access()
        self._load = Load(self._urls, self._access, seed, CLIENTS, JOINING)
        self._dice = random.Random(seed)
        self._seed = seed
        self._changes: list[ChangeMade] = []

    async def run(self) -> RunResult:
        """Run, then judge. Raises LoadError when something does not come about."""
        began = time.monotonic()
        cluster = self._cluster
        try:
            cluster.controllers[1].start()
            cluster.brokers[1].start()
            async with LogbergClient(self._urls, self._access, _ASK_S, "voters") as client:
                await self._until(lambda: self._serves(client), "the first controller serves")
                self._load.start()
                loaded_at = time.monotonic()
                for size in SIZES:
                    await self._resize(client, size)
                await asyncio.sleep(0.5)
                ended_at = time.monotonic()
                await self._load.stop()
                await self._until(lambda: self._all_hold_all(client), "all hold the same")
                end = await self._log_end(client)
        finally:
            self._load.abandon()
            await asyncio.to_thread(cluster.stop)
        folders = [cluster.folder / f"controller-{n}" for n in cluster.controllers]
        verdict, ledger = judge(self._load.acknowledged, folders, end)
        pause = longest_within(self._load.answered_at, loaded_at, ended_at)
        return RunResult(
            self._seed,
            time.monotonic() - began,
            len(self._load.acknowledged),
            len(ledger.began_ms),
            self._changes,
            pause.took_s,
            verdict,
        )

    # -- changes ---------------------------------------------------------------------------------

    async def _resize(self, client: LogbergClient, size: int) -> None:
        while True:
            voters = await self._voters(client)
            if len(voters) == size:
                return
            if len(voters) < size:
                missing = min(self._cluster.controllers.keys() - voters)
                for n in range(missing, size + 1):
                    self._cluster.controllers[n].start()
                await self._change(client, VoterAction.ADD, missing, voters)
            else:
                node = self._dice.choice(sorted(voters))
                await self._change(client, VoterAction.REMOVE, node, voters)

    async def _change(
        self, client: LogbergClient, action: VoterAction, node: int, before: set[int]
    ) -> None:
        after = before ^ {node}
        running = [n for n, child in self._cluster.controllers.items() if child.running]
        choice = may_be_killed(before, after, running)
        leader = await self._leader(client)
        lead = leader in choice and self._dice.random() < 0.5
        victim = leader if lead else self._dice.choice(choice)
        refused: Counter[str] = Counter()
        began = time.monotonic()
        change = asyncio.create_task(self._made(client, action, node, refused))
        await asyncio.sleep(self._dice.uniform(0.0, self._dice.choice(_MOMENTS_S[action])))
        under_way = not change.done()
        self._cluster.controllers[victim].signal(signal.SIGKILL)
        await asyncio.sleep(self._dice.uniform(*_DOWN_S))
        await asyncio.to_thread(self._cluster.controllers[victim].kill)
        self._cluster.controllers[victim].start()
        await change
        took_s = time.monotonic() - began
        await self._until(lambda: self._all_follow(client), "the killed controller follows")
        voters = await self._voters(client)
        if voters != after:
            raise LoadError(f"the voters are {voters}, and should be {after}")
        pause = longest_within(self._load.answered_at, began, time.monotonic())
        self._changes.append(
            ChangeMade(
                action.value,
                node,
                len(before),
                victim,
                victim == leader,
                under_way,
                took_s,
                refused,
                pause.took_s,
            )
        )

    async def _made(
        self, client: LogbergClient, action: VoterAction, node: int, refused: Counter[str]
    ) -> None:
        """Ask until the change is made. Raises LoadError, ClientError."""
        host, _, port = self._cluster.quorum_address(node).rpartition(":")
        where = (host, int(port)) if action is VoterAction.ADD else ("", 0)
        until = time.monotonic() + _LIMIT_S
        while time.monotonic() < until:
            try:
                await client.change_voters(action, node, "", where, reason="a run of voters")
                return
            except ClientError as error:
                refused[error.code] += 1
                if error.code == ErrorCode.INVALID_REQUEST:
                    if await self._is_gone_or_led(client, node, error):
                        return
                elif not error.reply.retriable and error.code != ErrorCode.VOTERS_NOT_READY:
                    raise
            await asyncio.sleep(_LOOK_S)
        raise LoadError(f"{action.value} {node} was not made within {_LIMIT_S:.0f} s: {refused}")

    async def _is_gone_or_led(self, client: LogbergClient, node: int, error: ClientError) -> bool:
        """Judge a refusal for good: an earlier try removed the voter, or it leads.

        If it leads, another one takes over.
        """
        view = await view_of(client, self._urls, None)
        if not is_leaders(view):
            return False
        others = [m.node_id for m in view.members if m.is_voter and m.node_id != view.node_id]
        if view.node_id == node:
            try:
                await client.transfer_leadership(self._dice.choice(others))
            except ClientError as refusal:
                if not refusal.reply.retriable:
                    raise
            return False
        if node not in others:
            return True
        # Between the refusal and our look another one took over; what was refused may go now.
        if "leads and can't remove itself" in str(error):
            return False
        raise error

    # -- looking ---------------------------------------------------------------------------------

    async def _until(self, look: Callable[[], Awaitable[Any]], what: str) -> None:
        until = time.monotonic() + _LIMIT_S
        while not await look():
            self._load.check()
            self._cluster.check_alive()
            if time.monotonic() > until:
                raise LoadError(f"never: {what}, within {_LIMIT_S:.0f} s")
            await asyncio.sleep(_LOOK_S)

    async def _serves(self, client: LogbergClient) -> bool:
        found = await observe(client, self._urls[:1])
        return found.is_ready(1)

    async def _view(self, client: LogbergClient) -> QuorumReply:
        """The leader's view."""
        until = time.monotonic() + _LIMIT_S
        while time.monotonic() < until:
            try:
                view = await view_of(client, self._urls, None)
            except ClientError:
                pass
            else:
                if is_leaders(view) and view.voters_committed:
                    return view
            await asyncio.sleep(_LOOK_S)
        raise LoadError(f"nobody leads with committed voters within {_LIMIT_S:.0f} s")

    async def _leader(self, client: LogbergClient) -> int:
        return (await self._view(client)).node_id

    async def _voters(self, client: LogbergClient) -> set[int]:
        return {m.node_id for m in (await self._view(client)).members if m.is_voter}

    async def _log_end(self, client: LogbergClient) -> int:
        url = self._cluster.controller_url(await self._leader(client))
        return (await client.from_one(url, "/v1/status", StatusReply)).log_end

    async def _all_follow(self, client: LogbergClient) -> bool:
        """Whether every controller that runs holds and has applied what is committed now."""
        before = await self._view(client)
        view = await self._view(client)
        at = {member.node_id: member.match_index for member in view.members if member.wire_format}
        at[view.node_id] = view.durable_index
        running = {n for n, child in self._cluster.controllers.items() if child.running}
        if not all(at.get(n, -1) >= before.commit_index for n in running):
            return False
        seen = await observe(client, [self._cluster.controller_url(n) for n in sorted(running)])
        return all(one.log_end >= before.high_watermark for one in seen.controllers)

    async def _all_hold_all(self, client: LogbergClient) -> bool:
        seen = await observe(client, self._urls)
        return seen.is_ready(1) and len({one.log_end for one in seen.controllers}) == 1


def _know_only_itself(config_file: Path) -> None:
    """Let the first controller be configured without the others: they are added."""
    config = tomllib.loads(config_file.read_text())
    config["controllers"] = config["controllers"][:1]
    config_file.write_text(to_toml(config))
