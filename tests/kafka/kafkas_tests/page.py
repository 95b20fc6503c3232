"""Makes docs/kafka/kafkas-tests.md from the outcomes of runs."""

from collections import Counter
from pathlib import Path
from typing import Final

from tests.kafka.kafkas_tests.classes import NOT_STARTED, meant
from tests.kafka.kafkas_tests.jar_sets import VERSION
from tests.kafka.kafkas_tests.outcomes import Outcome, read_outcomes
from tests.kafka.kafkas_tests.running import Side

PAGE: Final = Path(__file__).parents[3] / "docs" / "kafka" / "kafkas-tests.md"
_HEAD: Final = f"""# Kafka's own tests on our controllers

Apache Kafka publishes its integration tests as jars. Version {VERSION} of them runs here on our
controllers, and on Kafka's own (KRaft) to compare. Tests, brokers, clients and tools are Kafka's,
unmodified. Only the class by which Kafka's test kit makes a controller is replaced, by one that
starts `logberg controller` with the server.properties of the test
([ADR 0076](../adr/0076-kafkas-own-tests.md)).
`make kafka-tests` runs all again and writes this page. Only the reasons are written by hand.

A test counts for each of its variants. *Not run* are tests that need what a controller outside the
test's own JVM can't have. The seconds are those of the whole class on one small, shared machine.
They show how long a run takes, not which controller is faster. Where a cell is empty, the class has
not run there yet, and a class that is not in the table has not run at all. A number in **bold** has
a failure that KRaft has not and that no reason explains: a defect.

`ShareConsumerRackAwareTest` fails at times: in one of seven runs on Logberg, in none of ten on
KRaft. At its end the test closes its consumers one after another, and its own assignor fails when a
rack has no member left. If the brokers assign the group anew in that moment, the next consumer
can't be closed. No controller takes part in it.
"""
_COLUMNS: Final = (
    "class",
    "tests",
    "passed on Logberg",
    "passed on KRaft",
    "not run on Logberg",
    "seconds: Logberg, KRaft",
)


def page_of(outcomes: dict[str, dict[str, Outcome]]) -> str:
    """Return the page's text."""
    rows = [_row(name, sides) for name, sides in outcomes.items()]
    parts = [
        _HEAD,
        f"\n{_total(outcomes)}\n\n",
        f"| {' | '.join(_COLUMNS)} |\n|{'---|' * len(_COLUMNS)}\n",
        *rows,
        *_failures(outcomes),
        *_not_run(outcomes),
    ]
    return "".join(parts)


def write_page() -> None:
    """Write the page from what is kept."""
    PAGE.write_text(page_of(read_outcomes()), encoding="utf-8")


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def _total(outcomes: dict[str, dict[str, Outcome]]) -> str:
    def total(side: Side, what: str) -> int:
        return sum(int(sides.get(side, {}).get(what, 0)) for sides in outcomes.values())

    return (
        f"{len(outcomes)} classes: {total(Side.LOGBERG, 'passed')} tests passed on Logberg, "
        f"{total(Side.LOGBERG, 'failed')} failed, {total(Side.LOGBERG, 'not run')} were not run. "
        f"On KRaft {total(Side.KRAFT, 'passed')} passed and {total(Side.KRAFT, 'failed')} failed."
    )


def _row(name: str, sides: dict[str, Outcome]) -> str:
    ours, stock = sides.get(Side.LOGBERG), sides.get(Side.KRAFT)
    tests = next((one["tests"] for one in (stock, ours) if one is not None and one["ended"]), "?")
    cells = [
        f"`{_short(name)}`",
        str(tests),
        _passed(name, ours, stock),
        _passed(name, stock, stock),
        str((ours or {}).get("not run", "")),
        ", ".join("" if one is None else str(one["seconds"]) for one in (ours, stock)),
    ]
    return f"| {' | '.join(cells)} |\n"


def _passed(name: str, one: Outcome | None, stock: Outcome | None) -> str:
    if one is None:
        return ""
    if not one["ended"]:
        return "did not end"
    passed = str(one.get("passed", 0))
    return f"**{passed}**" if _defects(name, one, stock) else passed


def _defects(name: str, one: Outcome, stock: Outcome | None) -> list[str]:
    """Return the tests that fail here and not on KRaft, and that no reason explains."""
    there = {} if stock is None else stock["failures"]
    return [test for test in one["failures"] if test not in there and not meant(name, test)]


def _failures(outcomes: dict[str, dict[str, Outcome]]) -> list[str]:
    lines = []
    for name, sides in outcomes.items():
        stock = sides.get(Side.KRAFT)
        for test, why in sides.get(Side.LOGBERG, {}).get("failures", {}).items():
            also = stock is not None and test in stock["failures"]
            reason = "It fails on KRaft, too." if also else meant(name, test)
            lines.append(f"- `{_short(name)}.{test}`: {reason or f'**a defect**: `{why}`'}\n")
        ours = sides.get(Side.LOGBERG, {}).get("failures", {})
        lines += [
            f"- `{_short(name)}.{test}` failed on KRaft only.\n"
            for test in (stock or {}).get("failures", {})
            if test not in ours
        ]
    return ["\n## Failures\n\n", *lines] if lines else []


def _not_run(outcomes: dict[str, dict[str, Outcome]]) -> list[str]:
    reasons: Counter[str] = Counter()
    classes: dict[str, set[str]] = {}
    for name, sides in outcomes.items():
        for why in sides.get(Side.LOGBERG, {}).get("notRun", {}).values():
            reasons[why] += 1
            classes.setdefault(why, set()).add(f"`{_short(name)}`")
    rows = [
        f"| {why} | {count} | {', '.join(sorted(classes[why]))} |\n"
        for why, count in reasons.most_common()
    ]
    whole = [f"- `{_short(name)}`: {why}\n" for name, why in NOT_STARTED.items()]
    found = ["\n## Not run on Logberg\n\n"]
    found += ["| needs | tests | classes |\n|---|---|---|\n", *rows] if rows else []
    found += ["\nWhole classes that can't run:\n\n", *whole] if whole else []
    return found if rows or whole else []
