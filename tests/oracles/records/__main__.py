"""Compare with Kafka's serde; `--keep` writes the table anew. `make oracle` runs this, too.

Rule: the exit code is 1 if any bytes differ or Kafka refuses a record.
"""

import argparse
import sys

from tests.oracles.kafka_jars import NoOracleError, Oracle
from tests.oracles.records import JAVA, JAVA_CLASS, TABLE
from tests.oracles.records.cases import cases


def main() -> int:
    """Compare; print what differs; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.oracles.records")
    parser.add_argument("--keep", action="store_true", help=f"write {TABLE.name} anew")
    asked = parser.parse_args()
    found = list(cases())
    try:
        with Oracle(JAVA, JAVA_CLASS) as oracle:
            answers = oracle.ask([case.question for case in found], at_once=20)
    except NoOracleError as error:
        print(error, file=sys.stderr)
        return 2
    wrong = 0
    for case, answer in zip(found, answers, strict=True):
        ours = case.bytes.hex()
        if answer != f"{ours} {ours}":
            wrong += 1
            print(f"{case.name}: ours {ours}, Kafka's {answer}")
    if asked.keep:
        rows = (f"{c.name} {a.split()[0]}\n" for c, a in zip(found, answers, strict=True))
        TABLE.write_text("".join(rows))
    print(f"{len(found)} records, {wrong} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
