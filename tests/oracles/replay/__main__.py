"""Compare our replay of logs with that of Kafka's loader: `make oracle` runs this, too.

Rule: the exit code is 1 if any image differs, if Kafka refuses a log, or if there is none. `--keep`
writes the table anew.
"""

import argparse
import json
import sys
from collections import Counter

from metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    NoOpRecord,
    TopicRecord,
)
from tests.oracles.kafka_jars import NoOracleError, Oracle
from tests.oracles.replay import JAVA, JAVA_CLASS, TABLE
from tests.oracles.replay.comparing import differences, kafkas_facts, our_facts, replay
from tests.oracles.replay.differences import KEPT_CONFIG, LOST_CREDENTIAL, excuses
from tests.oracles.replay.logs import NoLogError, flushes, log_of, names, packed
from tests.oracles.replay.projection import LogBatch, in_kafkas_words, question

KEPT = (*(f"generated {seed}" for seed in (1, 2, 3, 5, 6, 22)), "clients 1", "moves 1")
"""The logs of the table."""


def compare(
    oracle: Oracle, name: str, log: list[LogBatch], counts: Counter[str], records: Counter[str]
) -> list[str]:
    """Compare all images of one log. Returns what differs."""
    flush = flushes(name, len(log))
    [line] = oracle.ask([question(log, flush)])
    said = json.loads(line)
    counts["logs"] += 1
    counts["batches"] += len(log)
    for batch in log:
        records.update(type(record).__name__ for record in batch.records)
    if "error" in said:
        return [f"Kafka: {said['error']}"]
    found: list[str] = []
    images = zip(replay(log, flush), said["images"], excuses(log, flush), strict=True)
    for ours, shown, excused in images:
        facts = our_facts(ours)
        counts["images"] += 1
        counts["entries"] += len(facts)
        wrong, documented = differences(facts, kafkas_facts(shown), excused)
        counts.update(documented)
        found += [f"at {ours.offset}: {each}" for each in wrong]
        if not shown["reloads"]:
            found.append(f"at {ours.offset}: Kafka's snapshot does not give its own image")
    return found


def main() -> int:
    """Compare; print what was counted; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.oracles.replay")
    parser.add_argument("--generated", type=int, default=500, help="how many generated logs")
    parser.add_argument("--simulated", type=int, default=24, help="how many simulated clusters")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--log", help="one log by its name, such as 'moves 3'")
    parser.add_argument("--keep", action="store_true", help=f"write {TABLE.name} anew")
    asked = parser.parse_args()
    counts: Counter[str] = Counter()
    records: Counter[str] = Counter()
    wrong: dict[str, list[str]] = {}
    try:
        with Oracle(JAVA, JAVA_CLASS) as oracle:
            if asked.keep:
                keep(oracle)
                return 0
            chosen = (
                [asked.log] if asked.log else names(asked.generated, asked.simulated, asked.first)
            )
            for name in chosen:
                try:
                    found = compare(oracle, name, log_of(name), counts, records)
                except NoLogError as error:
                    found = [str(error)]
                if found:
                    wrong[name] = found
            if not keeps_what_was_aborted(oracle):
                wrong["aborted transactions"] = [
                    "Kafka's loader discards them now: the projection may pass them on (ADR 0037)"
                ]
    except NoOracleError as error:
        print(f"oracle: {error}", file=sys.stderr)
        return 1
    print(
        f"replay: {counts['logs']:,} logs, {counts['batches']:,} batches, "
        f"{records.total():,} records of {len(records)} types, {counts['images']:,} images, "
        f"{counts['entries']:,} entries compared; as documented differ "
        f"{counts[KEPT_CONFIG]} ({KEPT_CONFIG}) and {counts[LOST_CREDENTIAL]} ({LOST_CREDENTIAL}) "
        f"entries; {len(wrong):,} logs differ otherwise"
    )
    for name, found in list(wrong.items())[:10]:
        print(f"  {name}: {len(found)} differences; again: --log '{name}'")
        for each in found[:3]:
            print(f"    {each[:600]}")
    return int(bool(wrong))


def keep(oracle: Oracle) -> None:
    """Write the table: logs, after which batches Kafka was asked, and Kafka's images."""
    rows = []
    for name in KEPT:
        log = log_of(name, faults_s=4.0)
        flush = flushes(name, len(log))[-3:]
        [line] = oracle.ask([question(log, flush)])
        rows.append({"name": name, "flush": flush, "log": packed(log), **json.loads(line)})
    TABLE.write_text("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows))


def keeps_what_was_aborted(oracle: Oracle) -> bool:
    """Return whether Kafka's loader still keeps an aborted transaction if a record follows it."""
    records = [
        BeginTransactionRecord("t"),
        TopicRecord("a", b"a" * 16),
        AbortTransactionRecord("r"),
        NoOpRecord(),
    ]
    rows = [in_kafkas_words(record, 33) for record in records]
    [line] = oracle.ask([json.dumps({"flush": [0], "batches": [[0, 1, 0, rows]]})])
    [shown] = json.loads(line)["images"]
    return bool(kafkas_facts(shown))


if __name__ == "__main__":
    sys.exit(main())
