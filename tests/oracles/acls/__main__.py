"""Compare our decisions on actions with Kafka's: `make oracle` runs this, too.

Rule: the exit code is 1 if any answer differs. `--keep` writes the table anew.
"""

import argparse
import sys
from random import Random

from tests.oracles.acls import JAVA, JAVA_CLASS, TABLE
from tests.oracles.acls.cases import ALLOWED, answer, draw
from tests.oracles.kafka_jars import NoOracleError, Oracle

_KEPT = 900
_BATCH = 2_000


def main() -> int:
    """Compare; print what was counted; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.oracles.acls")
    parser.add_argument("--states", type=int, default=100_000, help="how many to compare")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help=f"write {TABLE.name} anew")
    asked = parser.parse_args()
    dice, allowed = Random(asked.seed), 0
    wrong: list[tuple[str, str]] = []
    try:
        with Oracle(JAVA, JAVA_CLASS) as oracle:
            if asked.keep:
                lines = sorted({draw(dice) for _ in range(_KEPT)})
                rows = zip(lines, oracle.ask(lines, 100), strict=True)
                TABLE.write_text("".join(f"{said} <- {line}\n" for line, said in rows))
                return 0
            for start in range(0, asked.states, _BATCH):
                lines = [draw(dice) for _ in range(min(_BATCH, asked.states - start))]
                for line, said in zip(lines, oracle.ask(lines, 100), strict=True):
                    allowed += said == ALLOWED
                    if said != answer(line):
                        wrong.append((line, said))
    except NoOracleError as error:
        print(f"oracle: {error}", file=sys.stderr)
        return 1
    print(
        f"seed {asked.seed}: {asked.states:,} actions, {allowed:,} allowed, {len(wrong):,} differ"
    )
    for line, said in sorted(wrong, key=lambda pair: len(pair[0]))[:10]:
        print(f"  {line}\n    Kafka: {said}, ours: {answer(line)}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
