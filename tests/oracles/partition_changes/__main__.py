"""Compare our changes of partitions with Kafka's: `make oracle STATES=1000000`.

Rule: the exit code is 1 if any answer differs for a reason that `differences` doesn't name. Each
such case is reduced and shown as a line that can go into a test.
"""

import argparse
import sys
import time
from random import Random

from tests.oracles.kafka_jars import NoOracleError, Oracle
from tests.oracles.partition_changes import JAVA, JAVA_CLASS, table
from tests.oracles.partition_changes.comparing import (
    Ask,
    Judged,
    Tally,
    compare,
    judge_all,
)
from tests.oracles.partition_changes.lines import read_case, show_case, show_record
from tests.oracles.partition_changes.reducing import reduced

_SHOWN = 10
"""Cases that differ, at most."""
_CHOSEN_FROM = 60_000
"""Cases, of which the table keeps few."""
_TARGETS_FROM = 2_500
_PROGRESS = 100_000


def main() -> int:
    """Compare; print what was counted; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.oracles.partition_changes")
    parser.add_argument("--states", type=int, default=100_000, help="how many to compare")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help=f"write {table.TABLE.name} anew")
    parser.add_argument("--case", metavar="LINE", help="answer this one: STATE | CHANGE")
    asked = parser.parse_args()
    try:
        with Oracle(JAVA, JAVA_CLASS) as oracle:
            if asked.case:
                [judged] = judge_all(oracle.ask, [read_case(asked.case)])
                _show(judged)
                return int(judged.wrong)
            if asked.keep:
                return _keep(oracle.ask, asked.seed)
            return _compare(oracle.ask, asked.states, asked.seed)
    except NoOracleError as error:
        print(f"oracle: {error}", file=sys.stderr)
        return 1


def _keep(ask: Ask, seed: int) -> int:
    asked = (one for one in compare(ask, Random(seed), _TARGETS_FROM) if one.case.change.asked)
    table.write(sorted({table.shown(one) for one in asked}), table.TARGETS)
    lines = table.chosen(compare(ask, Random(seed), _CHOSEN_FROM))
    table.write(lines)
    print(f"{len(lines):,} rows of {_CHOSEN_FROM:,} cases; {table.TABLE.stat().st_size:,} bytes")
    return 0


def _compare(ask: Ask, states: int, seed: int) -> int:
    began, tally = time.monotonic(), Tally()
    for judged in compare(ask, Random(seed), states):
        tally.add(judged)
        if tally.compared % _PROGRESS == 0:
            took_s = time.monotonic() - began
            print(
                f"{tally.compared:,} compared, {tally.wrong:,} differ, {took_s:.0f} s", flush=True
            )
    print(f"seed {seed}: {tally.compared:,} states compared, {tally.changed:,} of them changed")
    for name, count in sorted(tally.excused.items()):
        print(f"{count:10,} differ as documented: {name}")
    print(f"{tally.wrong:10,} differ otherwise")
    for judged in tally.first_wrong[:_SHOWN]:
        _show(reduced(ask, judged.case))
    return int(bool(tally.wrong))


def _show(judged: Judged) -> None:
    print(f"\n  {show_case(judged.case)}")
    print(f"    Kafka: {judged.kafka.error or show_record(judged.kafka.record)}")
    print(f"    ours:  {show_record(judged.ours.record)}")
    if judged.differing:
        why = ", ".join(one.name for one in judged.excuses) or "NOT DOCUMENTED"
        print(f"    differ in {', '.join(judged.differing)}: {why}")


if __name__ == "__main__":
    sys.exit(main())
