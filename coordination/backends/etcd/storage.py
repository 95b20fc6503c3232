"""Keys and values on etcd: reads, lists and commits.

Rule: a commit is one transaction. Its comparisons are its checks, fences and the conditions of its
operations, and its proof (`proofs.py`). When they don't hold, the same transaction reads all the
keys concerned, so the refusal names the right step.

A fence compares the create revision of the grant's key with the token. That suffices: an entry that
was granted once stays granted until it is gone.
"""

from collections.abc import AsyncIterator
from typing import Final

from coordination.backend import Check, Commit, Committed, Fence, Operation, RecordPage
from coordination.backends.etcd import messages as wire
from coordination.backends.etcd.gateway import EtcdGateway, LeaseGone, RevisionCompacted
from coordination.backends.etcd.layout import EtcdLayout
from coordination.backends.etcd.proofs import REFUSED, EtcdProofs, Proof
from coordination.backends.etcd.resources import EtcdResources
from coordination.backends.etcd.sessions import lost
from coordination.errors import (
    Compacted,
    CoordinationError,
    Fenced,
    KeyExists,
    KeyMissing,
    RevisionMismatch,
    Unavailable,
)
from coordination.types import Record, Revision, Token

_MOST_FENCES: Final = 1024
"""How many grants' keys the client remembers."""


class EtcdStorage:
    """Reads and commits."""

    def __init__(
        self,
        gateway: EtcdGateway,
        layout: EtcdLayout,
        resources: EtcdResources,
        proofs: EtcdProofs,
    ) -> None:
        self._gateway = gateway
        self._layout = layout
        self._resources = resources
        self._proofs = proofs
        self._granted: dict[Fence, bytes] = {}

    async def get(self, key: str, *, stale: bool) -> Record | None:
        """Read one key; `stale` asks one server only."""
        request = wire.RangeRequest(key=self._layout.key(key), serializable=stale)
        reply = await self._gateway.ask("/v3/kv/range", request, wire.RangeReply)
        return self._layout.record(reply.kvs[0]) if reply.kvs else None

    async def pages(self, prefix: str, *, keys_only: bool, page: int) -> AsyncIterator[RecordPage]:
        """List keys; each page reads the revision of the first one. Raises Compacted."""
        start = self._layout.key(prefix)
        end = wire.prefix_end(start)
        revision = 0
        while True:
            request = wire.RangeRequest(
                key=start, range_end=end, limit=page, revision=revision, keys_only=keys_only
            )
            try:
                reply = await self._gateway.ask("/v3/kv/range", request, wire.RangeReply)
            except RevisionCompacted:
                raise Compacted(
                    f"etcd compacted revision {revision} while it was listed; list again"
                ) from None
            revision = revision or reply.header.revision
            records = tuple(self._layout.record(found) for found in reply.kvs)
            yield RecordPage(Revision(revision), records)
            if not reply.more:
                return
            start = reply.kvs[-1].key + b"\0"

    async def commit(self, commit: Commit) -> Committed:
        """Make a commit once, or raise what refuses it."""
        conditions = [self._check(check) for check in commit.checks]
        for index, fence in enumerate(commit.fences, len(commit.checks)):
            conditions.append(wire.created_at(await self._grant(fence, index), fence.token))
        conditions += [self._condition(operation) for operation in commit.operations]
        proof = await self._proofs.begin(commit)
        try:
            return await self._make(commit, proof, conditions)
        except LeaseGone:
            return await self._after_lost_lease(commit)

    async def _make(
        self, commit: Commit, proof: Proof, conditions: list[wire.Compare | None]
    ) -> Committed:
        """Send the transaction until we know what came of it."""
        compared = [each for each in conditions if each is not None]
        steps = tuple(self._step(operation) for operation in commit.operations)
        reads = tuple(wire.read_key(each.key) for each in compared)
        doubtful = False
        while True:
            request = wire.TxnRequest(
                compare=(proof.condition, *compared),
                success=(proof.step, *steps),
                failure=(wire.read_key(proof.key), *reads),
            )
            reply, repeated = await self._gateway.change("/v3/kv/txn", request, wire.TxnReply)
            doubtful |= repeated
            if reply.succeeded:
                revision = proof.revision = reply.header.revision
                applied = self._applied(commit, reply)
                self._proofs.finish(commit, proof)
                return Committed(Revision(revision), applied)
            written = reply.read(0)
            if written is not None and written.value == proof.value:
                proof.revision = written.mod_revision
                self._proofs.finish(commit, proof)
                return await self._made_before(commit, written.mod_revision)
            if (written.mod_revision if written is not None else 0) != proof.revision:
                proof.revision = written.mod_revision if written is not None else 0
                continue
            if doubtful:
                # The first try may still be on its way. A changed proof refuses it.
                await self._give_up(proof)
                doubtful = False
                continue
            self._proofs.finish(commit, proof)
            raise await self._refusal(commit, conditions, reply)

    async def _give_up(self, proof: Proof) -> None:
        request = wire.TxnRequest(
            compare=(proof.condition,),
            success=(wire.put_key(proof.key, REFUSED, proof.lease),),
        )
        await self._gateway.change("/v3/kv/txn", request, wire.TxnReply)

    async def _after_lost_lease(self, commit: Commit) -> Committed:
        """The session is over, or the lease of request ids is: this client was asleep for long."""
        if commit.request_id is None and commit.session is not None:
            self._proofs.forget(commit.session)
            raise lost(commit.session)
        self._proofs.drop_lease()
        raise Unavailable("etcd has ended the lease of this client's request ids; try again")

    async def _made_before(self, commit: Commit, revision: int) -> Committed:
        """Return the result of a commit that was made by an earlier try."""
        applied = []
        for operation in commit.operations:
            if operation.kind != "delete":
                applied.append(True)
                continue
            key = self._layout.key(operation.key)
            request = wire.RangeRequest(key=key, revision=revision - 1, keys_only=True)
            try:
                reply = await self._gateway.ask("/v3/kv/range", request, wire.RangeReply)
                applied.append(bool(reply.kvs))
            except RevisionCompacted:
                applied.append(True)  # etcd forgot whether there was a key; it is gone anyhow
        return Committed(Revision(revision), tuple(applied))

    async def _grant(self, fence: Fence, index: int) -> bytes:
        """Return the key of the grant with this token. Raises Fenced."""
        known = self._granted.get(fence)
        if known is not None:
            return known
        held = (await self._resources.entries(fence.resource)).entries
        for entry in held:
            if entry.granted and entry.token == fence.token:
                if len(self._granted) >= _MOST_FENCES:
                    self._granted.pop(next(iter(self._granted)))
                key = self._granted[fence] = self._layout.entry(fence.resource, entry.id)
                return key
        raise _fenced(fence, held[0].token if held else None, index)

    def _check(self, check: Check) -> wire.Compare | None:
        return wire.changed_at(self._layout.key(check.key), check.mod_revision or 0)

    def _condition(self, operation: Operation) -> wire.Compare | None:
        key = self._layout.key(operation.key)
        if operation.kind == "put":
            return wire.is_absent(key)
        if operation.expect is not None:
            return wire.changed_at(key, operation.expect)
        return wire.is_present(key) if operation.kind == "update" else None

    def _step(self, operation: Operation) -> wire.RequestOp:
        key = self._layout.key(operation.key)
        if operation.kind == "delete":
            return wire.delete_key(key)
        return wire.put_key(key, operation.data)

    def _applied(self, commit: Commit, reply: wire.TxnReply) -> tuple[bool, ...]:
        return tuple(
            operation.kind != "delete" or reply.deleted(number)
            for number, operation in enumerate(commit.operations, 1)
        )

    async def _refusal(
        self, commit: Commit, conditions: list[wire.Compare | None], reply: wire.TxnReply
    ) -> CoordinationError:
        """Return the error of the first step whose condition doesn't hold."""
        steps: tuple[Check | Fence | Operation, ...]
        steps = (*commit.checks, *commit.fences, *commit.operations)
        answer = 0
        for index, (step, condition) in enumerate(zip(steps, conditions, strict=True)):
            if condition is None:
                continue
            answer += 1
            found = reply.read(answer)
            if _holds(condition, found):
                continue
            if isinstance(step, Fence):
                self._granted.pop(step, None)
                held = (await self._resources.entries(step.resource)).entries
                return _fenced(step, held[0].token if held else None, index)
            return self._step_refusal(step, found, index)
        return Unavailable("etcd refused the transaction, and all its conditions hold; try again")

    def _step_refusal(
        self, step: Check | Operation, found: wire.EtcdKey | None, index: int
    ) -> CoordinationError:
        if isinstance(step, Operation) and step.kind == "put" and found is not None:
            return KeyExists(
                f"{step.key!r} is there", record=self._layout.record(found), index=index
            )
        if isinstance(step, Operation) and step.kind == "update" and found is None:
            return KeyMissing(f"{step.key!r} is not there", index=index)
        current = Revision(found.mod_revision) if found is not None else None
        return RevisionMismatch(
            f"{step.key!r} was changed at revision {current}", current=current, index=index
        )


def _holds(condition: wire.Compare, found: wire.EtcdKey | None) -> bool:
    if condition.target == "MOD":
        return (found.mod_revision if found is not None else 0) == condition.mod_revision
    created = found.create_revision if found is not None else 0
    return (created == condition.create_revision) == (condition.result == "EQUAL")


def _fenced(fence: Fence, current: Token | None, index: int) -> Fenced:
    says = f"token {fence.token} is not that of the present grant of {fence.resource.name!r}"
    return Fenced(f"{says}, {current}", current_token=current, index=index)
