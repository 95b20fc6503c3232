"""Compare with Kafka's serde; `--keep` writes the tables anew. `make oracle` runs this, too.

    python -m tests.oracles.records [--keep] [--seeds 200]

Rule: the exit code is 1 if any bytes differ, Kafka refuses a record, or Kafka has a type or a
version that our schemas lack.
"""

import argparse
import sys

from tests.kafka_records import round_trip
from tests.oracles.kafka_jars import NoOracleError, Oracle
from tests.oracles.records import JAVA, JAVA_CLASS, TABLE, drawn
from tests.oracles.records.cases import cases


def main() -> int:
    """Compare; print what differs; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.oracles.records")
    parser.add_argument("--keep", action="store_true", help="write the tables anew")
    parser.add_argument("--seeds", type=int, default=200, help="drawn records of each version")
    wanted = parser.parse_args()
    try:
        wrong = golden_records(keep=wanted.keep) + drawn_records(wanted.seeds, keep=wanted.keep)
    except NoOracleError as error:
        print(error, file=sys.stderr)
        return 2
    return 1 if wrong else 0


def golden_records(*, keep: bool) -> int:
    """Ours to Kafka's and back; return how many differ."""
    found = list(cases())
    with Oracle(JAVA, JAVA_CLASS) as oracle:
        answers = oracle.ask([case.question for case in found], at_once=20)
    wrong = 0
    for case, answer in zip(found, answers, strict=True):
        ours = case.bytes.hex()
        if answer != f"{ours} {ours}":
            wrong += 1
            print(f"{case.name}: ours {ours}, Kafka's {answer}")
    if keep:
        rows = (f"{c.name} {a.split()[0]}\n" for c, a in zip(found, answers, strict=True))
        TABLE.write_text("".join(rows))
    print(f"{len(found)} golden records, {wrong} differ")
    return wrong


def drawn_records(seeds: int, *, keep: bool) -> int:
    """Kafka's to ours and back; return how many differ."""
    with Oracle(drawn.JAVA, drawn.JAVA_CLASS) as oracle:
        [answer] = oracle.ask([drawn.ALL_TYPES])
        kafkas = drawn.parse_types(answer)
        wrong = int(kafkas != drawn.our_types())
        if wrong:
            print(f"Kafka has {kafkas}, our schemas {drawn.our_types()}")
        found = list(drawn.asked(kafkas, max(seeds, drawn.SEEDS)))
        answers = oracle.ask([one.question for one in found], at_once=20)
    for one, said in zip(found, answers, strict=True):
        why = difference(said)
        if why:
            wrong += 1
            print(f"{one.key}: {said}: {why}")
    if keep:
        rows = zip(found, answers, strict=True)
        TABLE.with_name(drawn.TABLE.name).write_text(
            "".join(f"{one.key} {said}\n" for one, said in rows if one.seed < drawn.SEEDS)
        )
    print(f"{len(found)} drawn records, {wrong} differ")
    return wrong


def difference(said: str) -> str:
    """Return why Kafka's bytes don't come back from our record; empty: they do."""
    if said.startswith("error"):
        return "Kafka could not draw it"
    value = bytes.fromhex(said)
    try:
        back = round_trip(value)
    except (AssertionError, ValueError, TypeError) as error:
        return f"{type(error).__name__}: {error}"
    return "" if back.data == value else f"{back.data.hex()} came back"


if __name__ == "__main__":
    sys.exit(main())
