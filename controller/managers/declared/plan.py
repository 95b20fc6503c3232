"""The plan of an apply: what differs from the declaration, item by item.

Rule: the digest covers what a user sees of a plan, and nothing random. So a plan that was confirmed
and the plan that is carried out can be compared, although both draw their own topic ids.
"""

import hashlib
from collections.abc import Callable, Generator, Iterable
from typing import Final

import msgspec

from controller.result import ControllerResult
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.messages import ApplyReply, Difference, ErrorReply, PlannedItem, error_reply
from metadata.records import Record

CREATE, CHANGE, REMOVE, NONE = "create", "change", "remove", "none"
ANSWER_BYTES_MAX: Final = 64 * 1024
"""The most bytes of items in an answer that the log has to remember."""
STEP: Final = 64
"""Items between two yields."""
Holds = Callable[[MetadataImage], bool]
Working = Generator[None, None, None]


class Item:
    """One declared or removed thing, while the plan is made."""

    def __init__(self, kind: str, name: str, action: str = NONE) -> None:
        self.kind = kind
        self.name = name
        self.action = action
        self.differences: list[Difference] = []
        self.error: ErrorReply | None = None

    def differs(self, name: str, before: object | None, after: object | None) -> None:
        """Note a difference; a declared thing that exists is then to be changed."""
        self.differences.append(Difference(name, _text(before), _text(after)))
        if self.action == NONE:
            self.action = CHANGE

    def refuse(self, error: LogbergError | ErrorReply | None) -> None:
        """Note why this can't be done. The first reason counts."""
        if self.error is None and error is not None:
            self.error = error_reply(error) if isinstance(error, LogbergError) else error


class ApplyPlan:
    """The items and records so far."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self.records: list[Record] = []
        self.last_records: list[Record] = []
        """Deletions of topics. They come behind all other records."""
        self.salted_hashes: tuple[bytes, ...] = ()
        self._rests_on: list[Holds] | None = []
        self._touches: set[bytes] = set()
        self._seen: set[tuple[str, str]] = set()

    def item(self, kind: str, name: str, action: str = NONE) -> Item:
        """Add an item. One that is declared twice is refused."""
        item = Item(kind, name, action)
        self.items.append(item)
        if (kind, name) in self._seen:
            item.refuse(invalid(f"{kind} {name[:300]} is declared twice"))
        self._seen.add((kind, name))
        return item

    def add(self, result: ControllerResult, *, at_end: bool = False) -> None:
        """Take over what a manager decided."""
        (self.last_records if at_end else self.records).extend(result.records)
        self.salted_hashes += result.salted_hashes
        if not result.records:
            return
        if result.rests_on is None:
            self._rests_on = None
        elif self._rests_on is not None:
            self._rests_on.append(result.rests_on)
            self._touches |= result.touches

    def add_records(self, records: Iterable[Record]) -> None:
        """Take over records that no manager has to decide about."""
        self.add(ControllerResult(list(records)))

    def result(
        self, *, dry_run: bool, expected: str | None
    ) -> Generator[None, None, ControllerResult]:
        """Return all of it as one decision: everything, or the errors and no record.

        Raises LogbergError PLAN_CHANGED if the plan isn't the expected one.
        """
        shown = [item for item in self.items if item.action != NONE or item.error is not None]
        digest, size, planned = hashlib.sha256(), 0, []
        for number, item in enumerate(shown, 1):
            one = PlannedItem(
                item.kind, item.name, item.action, tuple(item.differences), item.error
            )
            planned.append(one)
            encoded = msgspec.msgpack.encode(one)
            digest.update(encoded)
            size += len(encoded)
            if number % STEP == 0:
                yield
        refused = sum(item.error is not None for item in shown)
        plan = digest.hexdigest()[:32]
        if expected not in (None, plan) and not refused:
            raise LogbergError(
                ErrorCode.PLAN_CHANGED,
                f"expectedPlan: the plan is {plan} now, and not {str(expected)[:64]}: the cluster "
                "changed after the dry run, or the declaration did",
                {"field": "expectedPlan"},
            )
        times = [item.action for item in shown if item.error is None]
        records = [] if refused else [*self.records, *self.last_records]
        keeps = dry_run or not records or size <= ANSWER_BYTES_MAX
        reply = ApplyReply(
            tuple(planned) if keeps else (),
            plan,
            created=times.count(CREATE),
            changed=times.count(CHANGE),
            removed=times.count(REMOVE),
            unchanged=len(self.items) - len(shown),
            refused=refused,
            dry_run=dry_run,
        )
        rests_on = self._rests_on
        return ControllerResult(
            records,
            reply,
            rests_on=None if rests_on is None else lambda later: all(f(later) for f in rests_on),
            salted_hashes=() if refused else self.salted_hashes,
            touches=frozenset(self._touches),
        )


def invalid(message: str, code: ErrorCode = ErrorCode.INVALID_REQUEST) -> LogbergError:
    """Return an error that has no field: the item names what it is about."""
    return LogbergError(code, message)


def _text(value: object | None) -> str | None:
    return None if value is None else str(value)
