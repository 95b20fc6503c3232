"""Keys and values on Consul: reads, lists and commits.

Rule: a commit first reads the keys that it is about, and decides with them whether it is refused.
Then one transaction makes it, under the condition that none of these keys has changed. If one has,
the commit begins again. So each refusal names the right step, and each key counts its versions.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

from coordination.backend import Check, Commit, Committed, Fence, Operation, RecordPage
from coordination.backends.consul import messages as wire
from coordination.backends.consul.gateway import ConsulGateway
from coordination.backends.consul.layout import ConsulLayout
from coordination.backends.consul.proofs import ConsulProofs, WrittenProof
from coordination.backends.consul.resources import ConsulResources
from coordination.backends.consul.sessions import lost
from coordination.errors import (
    Fenced,
    KeyExists,
    KeyMissing,
    RevisionMismatch,
    StepRefused,
    Unavailable,
)
from coordination.types import Record, Revision
from runtime.clock import Clock


@dataclass(frozen=True, slots=True)
class PlannedCommit:
    """The steps of a commit as things stand, and what its operations would do."""

    steps: list[wire.KeyStep]
    applied: tuple[bool, ...]


class ConsulStorage:
    """Reads and commits."""

    def __init__(
        self,
        gateway: ConsulGateway,
        layout: ConsulLayout,
        resources: ConsulResources,
        proofs: ConsulProofs,
        clock: Clock,
    ) -> None:
        self._gateway = gateway
        self._layout = layout
        self._resources = resources
        self._proofs = proofs
        self._clock = clock

    async def get(self, key: str, *, stale: bool) -> Record | None:
        """Read one key; `stale` lets any server answer."""
        found = await self._read(self._layout.key(key), "stale" if stale else "consistent")
        return self._layout.record(found) if found is not None else None

    async def pages(self, prefix: str, *, page: int) -> AsyncIterator[RecordPage]:
        """List keys. Consul has no pages: one answer holds all, and is handed out in parts."""
        found = await self._gateway.read(self._layout.key(prefix), recurse=True)
        records = sorted(map(self._layout.record, found.keys), key=lambda each: each.key.encode())
        for start in range(0, max(1, len(records)), page):
            yield RecordPage(Revision(found.revision), tuple(records[start : start + page]))

    async def commit(self, commit: Commit) -> Committed:
        """Make a commit once, or raise what refuses it."""
        until = self._gateway.servers.deadline()
        proof = await self._proofs.begin(commit)
        doubtful = False
        look = commit.request_id is not None
        while self._clock.monotonic() < until:
            if look:
                written = await self._read(proof.key)
                proof.index = written.ModifyIndex if written is not None else 0
                applied = proof.applied(written)
                if applied is not None:
                    return self._made(commit, proof, applied)
            look = True
            try:
                plan = await self._plan(commit)
            except StepRefused:
                if not doubtful:
                    self._proofs.finish(commit, proof)
                    raise
                # The first try may still be on its way. A changed proof refuses it.
                await self._transact(proof, proof.refusing_steps(), until)
                doubtful = False
                continue
            steps = proof.steps(plan.applied) + plan.steps
            reply, repeated = await self._transact(proof, steps, until)
            if not reply.Errors:
                proof.index = reply.index_of(proof.key)
                return self._made(commit, proof, plan.applied)
            doubtful |= repeated
        raise Unavailable("others changed the same keys again and again; try again")

    def _made(self, commit: Commit, proof: WrittenProof, applied: tuple[bool, ...]) -> Committed:
        self._proofs.finish(commit, proof)
        return Committed(Revision(proof.index), applied)

    async def _transact(
        self, proof: WrittenProof, steps: list[wire.KeyStep], until: float
    ) -> tuple[wire.ConsulTxnReply, bool]:
        reply, repeated = await self._gateway.transact(steps, until)
        if any("invalid session" in each.What for each in reply.Errors or ()):
            self._proofs.forget(proof.session)
            raise lost(proof.session)
        return reply, repeated

    async def _plan(self, commit: Commit) -> PlannedCommit:
        """Read what the commit is about, and return its steps. Raises what refuses it."""
        named: list[Check | Operation] = [*commit.checks, *commit.operations]
        found = dict(
            zip(
                [each.key for each in named],
                await asyncio.gather(*(self._read(self._layout.key(e.key)) for e in named)),
                strict=True,
            )
        )
        steps = [
            self._check(check, found[check.key], index) for index, check in enumerate(commit.checks)
        ]
        for index, fence in enumerate(commit.fences, len(commit.checks)):
            steps.append(await self._fence(fence, index))
        for index, operation in enumerate(commit.operations, len(steps)):
            steps.append(self._change(operation, found[operation.key], index))
        applied = tuple(
            each.kind != "delete" or found[each.key] is not None for each in commit.operations
        )
        return PlannedCommit(steps, applied)

    async def _read(self, key: str, mode: str = "consistent") -> wire.ConsulKey | None:
        found = await self._gateway.read(key, mode=mode)
        return found.keys[0] if found.keys else None

    def _check(self, check: Check, found: wire.ConsulKey | None, index: int) -> wire.KeyStep:
        current = found.ModifyIndex if found is not None else 0
        if current != (check.mod_revision or 0):
            raise _mismatch(check.key, current, index)
        return wire.is_at(self._layout.key(check.key), current)

    async def _fence(self, fence: Fence, index: int) -> wire.KeyStep:
        held = (await self._resources.entries(fence.resource)).entries
        for entry in held:
            if entry.granted and entry.token == fence.token:
                return wire.is_at(self._layout.entry(fence.resource, entry.id), entry.revision)
        current = held[0].token if held else None
        says = f"token {fence.token} is not that of the present grant of {fence.resource.name!r}"
        raise Fenced(f"{says}, {current}", current_token=current, index=index)

    def _change(
        self, operation: Operation, found: wire.ConsulKey | None, index: int
    ) -> wire.KeyStep:
        """Return the step that makes an operation of a key as it is now."""
        key = self._layout.key(operation.key)
        current = found.ModifyIndex if found is not None else 0
        if operation.kind == "put" and found is not None:
            record = self._layout.record(found)
            raise KeyExists(f"{operation.key!r} is there", record=record, index=index)
        if operation.kind == "update" and found is None:
            raise KeyMissing(f"{operation.key!r} is not there", index=index)
        if operation.expect is not None and operation.expect != current:
            raise _mismatch(operation.key, current, index)
        if operation.kind == "delete":
            return wire.KeyStep("delete-cas", key, Index=current) if found else wire.is_absent(key)
        version = self._layout.record(found).version + 1 if found is not None else 1
        return wire.KeyStep("cas", key, Value=operation.data, Flags=version, Index=current)


def _mismatch(key: str, current: int, index: int) -> RevisionMismatch:
    return RevisionMismatch(
        f"{key!r} was changed at revision {current}",
        current=Revision(current) if current else None,
        index=index,
    )
