"""Runs the suite against stores, and writes what came of it as a Markdown table.

Rule: the table shows every case for every store: passed, skipped with the missing declaration,
failed, or not run with the reason. Nothing is left out because it looks bad.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from coordination.testing.case import Case, CaseOutcome, CaseVerdict, capabilities_of, run_case
from coordination.testing.cases import all_cases
from coordination.testing.store import Store

HEAD = """# Which backend passes which case

`make conformance` writes this page. Each column is one backend on real servers; `memory` has none.
A case is skipped only where the backend, or its tester, declares that something is missing.
"not run" without a number: the store's last run ended before this case.

"""


@dataclass(frozen=True, slots=True)
class StoreReport:
    """What came of the suite on one store."""

    store: str
    outcomes: tuple[CaseOutcome, ...] = ()
    not_run: str = ""
    """Why the suite wasn't run at all; empty: it was."""

    def of(self, case: Case) -> CaseOutcome | None:
        """Return the outcome of a case; None: it wasn't run."""
        return next((outcome for outcome in self.outcomes if outcome.case == case.name), None)

    def count(self, verdict: CaseVerdict) -> int:
        """Return how many cases ended so."""
        return sum(outcome.verdict is verdict for outcome in self.outcomes)


async def run_suite(
    store: Store,
    *,
    only: Sequence[str] = (),
    on_outcome: Callable[[CaseOutcome], None] = lambda _: None,
) -> StoreReport:
    """Run all cases, or only those named, one after the other against a store."""
    declared = await capabilities_of(store)
    outcomes = []
    for case in all_cases():
        if not only or case.name in only:
            outcome = await run_case(case, store, declared)
            outcomes.append(outcome)
            on_outcome(outcome)
    return StoreReport(store.name, tuple(outcomes))


def markdown(reports: Sequence[StoreReport]) -> str:
    """Return the page: sums, the matrix, and the reason of each skip and failure."""
    notes: dict[str, int] = {}
    rows = [_row(case, reports, notes) for case in all_cases()]
    stores = " | ".join(report.store for report in reports)
    lines = [
        HEAD + f"| | {stores} |",
        "|---" * (len(reports) + 1) + "|",
        *(_sum_row(verdict, reports) for verdict in CaseVerdict),
        "",
        f"| case | {stores} |",
        "|---" * (len(reports) + 1) + "|",
        *rows,
        "",
        "M1 to M10 are about imports; the importer's own tests have them.",
        "",
    ]
    if notes:
        lines += ["## Reasons", ""]
        lines += [f"{number}. {note}" for note, number in notes.items()]
        lines.append("")
    return "\n".join(lines)


def _sum_row(verdict: CaseVerdict, reports: Sequence[StoreReport]) -> str:
    cells = ["not run" if report.not_run else str(report.count(verdict)) for report in reports]
    return f"| {verdict.value} | {' | '.join(cells)} |"


def _row(case: Case, reports: Sequence[StoreReport], notes: dict[str, int]) -> str:
    cells = [_cell(case, report, notes) for report in reports]
    return f"| {case.name} {case.title} | {' | '.join(cells)} |"


def _cell(case: Case, report: StoreReport, notes: dict[str, int]) -> str:
    if report.not_run:
        return _noted("not run", f"{report.store}: {report.not_run}", notes)
    outcome = report.of(case)
    if outcome is None:
        return "not run"
    if outcome.verdict is CaseVerdict.PASSED:
        return "passed"
    if outcome.verdict is CaseVerdict.SKIPPED:
        return _noted("skipped", outcome.reason, notes)
    last = outcome.reason.strip().splitlines()[-1]
    return _noted("**failed**", f"{report.store}, {case.name}: `{last}`", notes)


def _noted(word: str, note: str, notes: dict[str, int]) -> str:
    return f"{word} ({notes.setdefault(note, len(notes) + 1)})"
