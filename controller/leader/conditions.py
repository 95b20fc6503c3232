"""Changes on condition that nothing which they touch has changed since their caller read it.

The caller sends the offset of its read. The leader refuses the change with STALE_EXPECTED_OFFSET if
a resource that it names or writes has changed at that offset or behind it (ADR 0034).

Invariant: the check and the decision read the same pending image, with all that is proposed. A
change that was prepared beside others is checked again when it is written. A change that is made in
rounds is checked in its first round: later rounds would meet its own records.
"""

from collections.abc import Callable, Generator, Iterable
from typing import Final

from controller.leader.last_changes import LastChanges
from controller.leader.resources import Resource, in_words, rests_on
from controller.result import ControllerResult, Decide
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from runtime.http.requests import Request

EXPECT_OFFSET: Final = "x-logberg-expect-offset"
_STEP: Final = 256

Concerns = Callable[[MetadataImage], Iterable[Resource]]


def expected_offset(request: Request) -> int | None:
    """Return the offset on which a request is conditional; None: on none. Raises LogbergError."""
    text = request.headers.get(EXPECT_OFFSET)
    if text is None:
        return None
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise LogbergError(
            ErrorCode.INVALID_REQUEST,
            f"header {EXPECT_OFFSET}: {text[:50]!r} is not an offset; send the offset of the "
            "answer that you read",
            {"field": EXPECT_OFFSET},
        )
    return int(text)


def conditional(
    decide: Decide,
    expected: int,
    last_changes: LastChanges,
    concerns: Concerns,
    *,
    in_rounds: bool,
    resumed: Callable[[], bool] = lambda: False,
) -> Decide:
    """Return a decision that is refused if its condition doesn't hold.

    `concerns` returns what the request names; what the decision writes is checked too. `resumed`
    says that an earlier round is in the log already, so that the condition did hold.
    """
    begun = False

    def decide_if(image: MetadataImage) -> Generator[None, None, ControllerResult]:
        nonlocal begun
        check = not ((in_rounds and begun) or resumed())
        if check:
            _check_reach(expected, image)
            yield from _check(expected, last_changes, concerns(image), image)
        decided = decide(image)
        result = (yield from decided) if isinstance(decided, Generator) else decided
        if not check:
            return result
        resources = yield from _resources(result, image)
        yield from _check(expected, last_changes, resources, image)
        begun = True
        still_right = result.rests_on
        if still_right is None:
            return result

        def still_holds(later: MetadataImage) -> bool:
            changed = last_changes.since(image.offset)
            return not any(each in resources for each in changed) and still_right(later)

        return result._replace(rests_on=still_holds)

    return decide_if


def _resources(
    result: ControllerResult, image: MetadataImage
) -> Generator[None, None, dict[Resource, None]]:
    """Return what the records of a decision rest on, in their order."""
    found: dict[Resource, None] = {}
    for number, record in enumerate(result.records, start=1):
        found.update(dict.fromkeys(rests_on(record, image)))
        if number % _STEP == 0:
            yield
    return found


def _check_reach(expected: int, image: MetadataImage) -> None:
    if expected > image.offset:
        raise _stale(
            f"the expected offset {expected} is beyond {image.offset}, the end of the log: it was "
            "not read from this cluster, or its change was lost. Read again, and decide anew"
        )


def _check(
    expected: int, last_changes: LastChanges, resources: Iterable[Resource], image: MetadataImage
) -> Generator[None, None, None]:
    for number, resource in enumerate(resources, start=1):
        changed_at = last_changes.of(resource)
        name = in_words(resource, image) if _is_stale(changed_at, expected, last_changes) else ""
        if name and changed_at is not None:
            raise _stale(
                f"{name} has changed since you read it: the change is at offset {changed_at}, and "
                f"your answer has only what is before offset {expected}. Read it again, and decide "
                "anew",
                resource=name,
                changedAt=str(changed_at),
            )
        if name:
            raise _stale(
                f"the leader knows of changes only from offset {last_changes.floor} on, so it "
                f"can't say whether {name} has changed since offset {expected}. Read it again, "
                "and decide anew",
                resource=name,
                knownFrom=str(last_changes.floor),
            )
        if number % _STEP == 0:
            yield


def _is_stale(changed_at: int | None, expected: int, last_changes: LastChanges) -> bool:
    return expected < last_changes.floor if changed_at is None else changed_at >= expected


def _stale(message: str, **details: str) -> LogbergError:
    return LogbergError(
        ErrorCode.STALE_EXPECTED_OFFSET, message, {"field": EXPECT_OFFSET, **details}
    )
