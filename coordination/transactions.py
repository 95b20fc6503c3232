"""Transactions: conditions and changes that the store makes together or not at all.

Rule: the steps keep the order in which they were added. An error's `index` counts in that order.

    moved = storage.txn().check("jobs/7", seen.mod_revision).put("done/7", b"").delete("jobs/7")
    await moved.commit()
"""

from typing import Literal

from coordination.backend import Check, Commit, Fence, Operation, Resource
from coordination.calls import SessionCalls
from coordination.errors import ConfigError, InvalidKey, StepRefused, TxnTooLarge
from coordination.holding import HeldGrant
from coordination.types import Revision, SessionId, Token

FenceLike = HeldGrant | Token | int
"""A Term or a Grant; or a bare token, with `resource=` beside it."""


def make_fence(calls: SessionCalls, fence: FenceLike, resource: Resource | None) -> Fence:
    """Return the condition that a grant is the present one.

    Raises SessionLost when the grant's session is over, ConfigError for a token without resource.
    """
    if isinstance(fence, HeldGrant):
        fence.session.check()
        return fence.fence
    if resource is None:
        raise ConfigError("a bare token needs resource=, such as lock.resource")
    return Fence(calls.resource(resource.kind, resource.name), Token(fence))


class Txn:
    """A transaction that is being put together; each method but `commit` returns it."""

    def __init__(self, calls: SessionCalls, request_id: str | None) -> None:
        self._calls = calls
        self._request_id = request_id
        self._steps: list[Check | Fence | Operation] = []

    def check(self, key: str, mod_revision: Revision | Literal["absent"]) -> "Txn":
        """Refuse all unless the key has this mod revision (RevisionMismatch), or is absent."""
        expected = None if mod_revision == "absent" else mod_revision
        return self._add(Check(self._calls.key(key), expected))

    def fence(self, fence: FenceLike, *, resource: Resource | None = None) -> "Txn":
        """Refuse all unless the grant is the present one (Fenced)."""
        return self._add(make_fence(self._calls, fence, resource))

    def put(self, key: str, data: bytes | str) -> "Txn":
        """Make a key (KeyExists)."""
        return self._add(Operation("put", self._calls.key(key), self._calls.data(data)))

    def update(self, key: str, data: bytes | str, *, expect: Revision | None = None) -> "Txn":
        """Change a key (KeyMissing, RevisionMismatch)."""
        value = self._calls.data(data)
        return self._add(Operation("update", self._calls.key(key), value, expect))

    def upsert(self, key: str, data: bytes | str) -> "Txn":
        """Make or change a key."""
        return self._add(Operation("upsert", self._calls.key(key), self._calls.data(data)))

    def delete(self, key: str, *, expect: Revision | None = None) -> "Txn":
        """Delete a key if it is there (RevisionMismatch)."""
        return self._add(Operation("delete", self._calls.key(key), b"", expect))

    async def commit(self) -> Revision:
        """Make all changes, or none, and return the revision of the last one.

        Where each change has a revision of its own, as in the quorum, the others' are smaller; a
        compare-and-set takes a key's own from its record.

        Raises the errors named at the steps, with the step's `index`; TxnTooLarge, NotSupported,
        OutcomeUnknown, Unavailable, SessionLost.
        """
        limit = self._calls.backend.capabilities.max_txn_operations
        if len(self._steps) > limit:
            raise TxnTooLarge(f"a transaction has {len(self._steps)} steps; the limit is {limit}")
        checks = [i for i, step in enumerate(self._steps) if isinstance(step, Check)]
        fences = [i for i, step in enumerate(self._steps) if isinstance(step, Fence)]
        changes = [i for i, step in enumerate(self._steps) if isinstance(step, Operation)]
        order = checks + fences + changes
        try:
            committed = await self._calls.call(
                lambda session: self._calls.backend.commit(self._commit(session)), changes=True
            )
        except StepRefused as refused:
            if refused.index is not None:
                refused.index = order[refused.index]
            raise
        return committed.revision

    def _commit(self, session: SessionId) -> Commit:
        return Commit(
            operations=tuple(step for step in self._steps if isinstance(step, Operation)),
            checks=tuple(step for step in self._steps if isinstance(step, Check)),
            fences=tuple(step for step in self._steps if isinstance(step, Fence)),
            request_id=self._request_id,
            session=session,
        )

    def _add(self, step: Check | Fence | Operation) -> "Txn":
        if isinstance(step, Operation) and any(
            isinstance(other, Operation) and other.key == step.key for other in self._steps
        ):
            raise InvalidKey(f"the transaction changes the key {step.key!r} already")
        self._steps.append(step)
        return self
