"""Shows a plan: a line for each difference, and how many things differ."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from logberg.cli.failure import Failure
from logberg.cli.output import Sheet, say, show, table
from logberg.declared.declaration import Key
from metadata.messages.declared import ApplyReply, PlannedItem

_SIGNS: Final = {"create": "+", "change": "~", "remove": "-", "none": "!"}


def show_plan(plan: ApplyReply) -> None:
    """Write the plan as a table with one line for each difference, and the counts."""
    if plan.items:
        show(_table(plan.items))
    say(summary(plan))


def summary(plan: ApplyReply) -> str:
    """Return how many things a plan creates, changes and removes."""
    said = (
        f"{plan.created} to create, {plan.changed} to change, {plan.removed} to remove, "
        f"{plan.unchanged} as declared"
    )
    return f"{said}, {plan.refused} refused" if plan.refused else said


def fail_for_refused(items: Iterable[PlannedItem], places: Mapping[Key, str]) -> None:
    """Raise Failure with every refused item and its place, if there is one."""
    lines = refusals(items, places)
    if lines:
        raise Failure("nothing is applied: " + lines[0], more=lines[1:])


def refusals(items: Iterable[PlannedItem], places: Mapping[Key, str]) -> list[str]:
    """Return a line for each refused item, with its place in the files."""
    return [
        f"{place}{': ' if place else ''}{item.kind} {item.name}: {item.error.message} "
        f"[{item.error.code}]"
        for item in items
        if item.error is not None
        for place in [places.get((item.kind, item.name), "")]
    ]


def _table(items: Iterable[PlannedItem]) -> Sheet:
    return table(
        ["", "kind", "name", "what", "from", "to"], (row for i in items for row in _rows(i))
    )


def _rows(item: PlannedItem) -> Iterator[tuple[Any, ...]]:
    sign = _SIGNS.get(item.action, "?")
    if not item.differences:
        yield sign, item.kind, item.name, "refused" if item.error else "", "", ""
    for each in item.differences:
        yield (
            sign,
            item.kind,
            item.name,
            each.name,
            "-" if each.before is None else each.before,
            "-" if each.after is None else each.after,
        )
