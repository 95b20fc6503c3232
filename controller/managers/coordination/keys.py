"""Commits writes to keys: all or none, on conditions (KIP-30's storage, with transactions).

Rules: conditions and writes read one state. A refusal names the index of the condition or operation
that failed, and nothing is written. A fence holds while the grant with its token is present, so a
holder that was replaced can't write any more, however late its request arrives.
"""

from controller.config import CoordinationLimits
from controller.managers.coordination.entries import KINDS
from controller.managers.coordination.limits import (
    check_name,
    check_room,
    check_size,
)
from controller.managers.coordination.sessions import open_session_of
from controller.result import ControllerResult
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.image.coordination import KEYS, CoordinationImage, is_granted, key_bytes
from metadata.messages import CommitReply, CommitRequest, KeyCheck, KeyOperation, TokenFence
from metadata.records import KeyRecord, Record, RemoveKeyRecord, TokenBaseRecord
from metadata.uuids import parse_uuid_of

ABSENT = -1
"""What an answer calls the revision of a key that is not there, and the token of no grant."""


class KeyManager:
    """Decides about keys."""

    def __init__(self, limits: CoordinationLimits) -> None:
        self._limits = limits

    def commit(
        self, image: MetadataImage, request: CommitRequest, principal: str
    ) -> ControllerResult:
        """Write if all conditions hold. Raises LogbergError."""
        self._check_request(request)
        state = image.coordination
        if request.session_id is not None:
            open_session_of(image, parse_uuid_of("sessionId", request.session_id), principal)
        for index, fence in enumerate(request.fences):
            _check_fence(state, index, fence)
        for index, check in enumerate(request.checks):
            _check_key(state, index, check)
        for index, operation in enumerate(request.operations):
            _check_operation(state, index, operation)

        def at(offset: int) -> ControllerResult:
            records: list[Record] = []
            applied = []
            more = size = 0
            for operation in request.operations:
                present = state.keys.get(operation.key)
                before = 0 if present is None else key_bytes(present)
                if operation.op == "delete":
                    applied.append(present is not None)
                    if present is not None:
                        records.append(RemoveKeyRecord(operation.key))
                        more, size = more - 1, size - before
                    continue
                record = _set(present, operation, offset + len(records))
                records.append(record)
                applied.append(True)
                more, size = more + (present is None), size + key_bytes(record) - before
            check_room(state, self._limits, KEYS, more, size)
            records.extend(lifted_tokens(state, request.tokens_above, offset + len(records)))
            reply = CommitReply(offset + len(records) - 1, tuple(applied), dry_run=request.dry_run)
            return ControllerResult(records, reply, rebase=at)

        return at(image.offset)

    def _check_request(self, request: CommitRequest) -> None:
        """Check everything that needs no state. Raises LogbergError."""
        limits = self._limits
        parts = len(request.operations) + len(request.checks) + len(request.fences)
        if parts > limits.commit_operations:
            raise LogbergError(
                ErrorCode.TXN_TOO_LARGE,
                f"it has {parts} operations, checks and fences; the most are "
                f"{limits.commit_operations}",
                {"limit": str(limits.commit_operations)},
            )
        for index, check in enumerate(request.checks):
            check_name(f"checks[{index}].key", check.key, limits.key_bytes)
        seen = set()
        size = 0
        for index, operation in enumerate(request.operations):
            check_name(f"operations[{index}].key", operation.key, limits.key_bytes)
            check_size(f"operations[{index}].data", operation.data, limits.value_bytes)
            size += len(operation.key) + len(operation.data)
            if operation.key in seen:
                raise LogbergError(
                    ErrorCode.INVALID_REQUEST,
                    f"operations[{index}].key: a transaction writes each key once",
                    {"field": f"operations[{index}].key"},
                )
            seen.add(operation.key)
        if size > limits.commit_bytes:
            raise LogbergError(
                ErrorCode.TXN_TOO_LARGE,
                f"its keys and values have {size} bytes; the most are {limits.commit_bytes}",
                {"limit": str(limits.commit_bytes)},
            )


def _set(present: KeyRecord | None, operation: KeyOperation, offset: int) -> KeyRecord:
    if present is None:
        return KeyRecord(operation.key, operation.data, offset, offset, 1)
    return KeyRecord(
        operation.key, operation.data, present.create_revision, offset, present.version + 1
    )


def lifted_tokens(
    state: CoordinationImage, above: int | None, offset: int
) -> tuple[TokenBaseRecord, ...]:
    """Return the record that lifts all later tokens above a number, if they aren't.

    `offset`: where the record would stand.
    """
    if above is None or state.token_base + offset > above:
        return ()
    return (TokenBaseRecord(above - offset + 1),)


def _check_fence(state: CoordinationImage, index: int, fence: TokenFence) -> None:
    current = ABSENT
    for token in _granted(state, fence):
        if token == fence.token:
            return
        current = max(current, token)
    raise LogbergError(
        ErrorCode.FENCED,
        f"the grant {fence.token} of {fence.kind} {fence.name!r} is not a present one",
        {
            "fence": str(index),
            "kind": fence.kind,
            "name": fence.name,
            "current": str(current),
        },
    )


def _granted(state: CoordinationImage, fence: TokenFence) -> list[int]:
    """Return the tokens of a resource's present grants."""
    resource = (int(KINDS[fence.kind]), fence.name)
    tokens = []
    for _, entry_id in state.queues.get(resource, ()):
        entry = state.entries[(*resource, entry_id)]
        if not is_granted(entry):
            break
        tokens.append(entry.token)
    return tokens


def _check_key(state: CoordinationImage, index: int, check: KeyCheck) -> None:
    present = state.keys.get(check.key)
    current = ABSENT if present is None else present.mod_revision
    if current != (ABSENT if check.mod_revision is None else check.mod_revision):
        raise _mismatch("check", index, check.key, current)


def _check_operation(state: CoordinationImage, index: int, operation: KeyOperation) -> None:
    present = state.keys.get(operation.key)
    named = {"operation": str(index), "key": operation.key}
    if operation.op == "put" and present is not None:
        raise LogbergError(
            ErrorCode.KEY_EXISTS,
            f"operations[{index}]: the key {operation.key!r} is there already",
            {
                **named,
                "modRevision": str(present.mod_revision),
                "createRevision": str(present.create_revision),
                "version": str(present.version),
            },
        )
    if operation.op == "update" and present is None:
        raise LogbergError(
            ErrorCode.KEY_MISSING,
            f"operations[{index}]: there is no key {operation.key!r}",
            named,
        )
    current = ABSENT if present is None else present.mod_revision
    if operation.expect is not None and current != operation.expect:
        raise _mismatch("operation", index, operation.key, current)


def _mismatch(part: str, index: int, key: str, current: int) -> LogbergError:
    found = "is not there" if current == ABSENT else f"is at revision {current}"
    return LogbergError(
        ErrorCode.REVISION_MISMATCH,
        f"{part}s[{index}]: the key {key!r} {found}",
        {part: str(index), "key": key, "current": str(current)},
    )
