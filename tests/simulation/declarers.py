"""Administrators who apply declarations, and what may be seen of each (kind `clients`).

A declaration is a group of things of several kinds that all carry one stamp: a topic's config, a
group's config, a user's quota, and for some groups subscriptions whose texts are so long that the
apply is a transaction of several batches. Each apply has another stamp, so it changes all of them.

- D1: an apply is atomic. Every unit of the log, and every export of any node, has all things of a
  group with one stamp, or none of them.
- D2: what was acknowledged is there until the next apply; what was refused was never there.
- D3: a declaration with a bad item is refused whole. A sound one is not refused, and applied again
  it writes nothing.
"""

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from metadata.codec import decode_records
from metadata.records import (
    AbortTransactionRecord,
    BeginEpochRecord,
    BeginTransactionRecord,
    ClientQuotaRecord,
    ConfigRecord,
    EndTransactionRecord,
    Record,
)
from runtime.http.requests import Reply, Request, Unreachable
from tests.simulation.clients import Administrator
from tests.simulation.movers import DECLARED

DECLARERS = 2
LONG_ENTRIES = 24
LONG_TEXT = 8_000
"""Characters of one value: so many entries don't fit into one batch."""
KINDS = "topics,configs,quotas"
_NO_BROKERS = "INVALID_REPLICATION_FACTOR"
Stamps = dict[str, int]
"""By thing, such as `topic` or `long-3`."""


class Declarer(Administrator):
    """Applies groups of things, one group after another."""

    stamp = 0
    there: dict[str, Any] | None = None
    """The last declaration, if it was applied."""

    def _act(self) -> None:
        if not self._crowd.cluster.busy:
            self.go_on()
            return
        chosen = self._dice.random()
        if chosen < 0.4:
            self._read_export()
        elif chosen < 0.55 and self.there is not None:
            self._again(self.there)
        else:
            self._apply()

    def _apply(self) -> None:
        name = self._name("declared")
        self.stamp += 1
        stamp = self.stamp
        before = self.possible["declared", name]
        self.possible["declared", name] = [*before, stamp]
        bad = self._dice.random() < 0.15
        body = declaration(f"{DECLARED}{name}", stamp, bad=bad)

        def done(reply: dict[str, Any]) -> None:
            codes = {item["error"]["code"] for item in reply["items"] if item["error"]}
            # Brokers may be fenced, so that a new topic has no place.
            if bad is not bool(codes - {_NO_BROKERS}) or bool(codes) is not bool(reply["refused"]):
                self._crowd.fail(f"D3: {name}, {'with' if bad else 'without'} a bad item: {reply}")
            # A retry may be answered by what an earlier try wrote: the same answer.
            self.possible["declared", name] = before if codes else [stamp]
            self._crowd.facts["applies refused" if codes else "applies"] += 1
            self.there = self.there if codes else body

        def unknown() -> None:
            del self._current["declared"]
            self.there = None

        self._send("POST", "/v1/apply", body, done, unknown)

    def _again(self, body: dict[str, Any]) -> None:
        """D3: a dry run of what is there finds no difference."""

        def done(reply: dict[str, Any]) -> None:
            if reply["items"] or reply["records"]:
                self._crowd.fail(f"D3: a declaration that was applied differs: {reply['items']}")
            self._crowd.facts["applies again"] += 1

        self._send("POST", "/v1/apply", {**body, "dryRun": True}, done, lambda: None)

    def _read_export(self) -> None:
        url = f"http://controller-{self._dice.choice(list(self._crowd.cluster.hosts))}"
        pages: list[dict[str, Any]] = []

        def ask(continuation: str | None) -> None:
            query = {"kinds": KINDS, "consistency": "stale", "limit": "20"}
            if continuation is not None:
                query["continuation"] = continuation
            request = Request("GET", "/v1/export", query=query)
            self._crowd.requests.request(url, request, answered, 2.0)

        def answered(answer: Reply | Unreachable) -> None:
            if not isinstance(answer, Reply) or answer.status != 200:
                self.go_on()
                return
            pages.append(json.loads(answer.body))
            if pages[-1]["offset"] != pages[0]["offset"]:
                self._crowd.fail("D1: the pages of an export are from two offsets")
            if pages[-1]["continuation"] is not None:
                ask(pages[-1]["continuation"])
                return
            self._crowd.facts["exports judged"] += 1
            for name, stamps in exported(pages).items():
                self._judge(name, stamps, "an export")
            self.go_on()

        ask(None)

    def _judge(self, name: str, stamps: Stamps, where: str) -> None:
        why = why_not_whole(name, stamps)
        if why:
            self._crowd.fail(f"D1: {where} has {name} in part: {why}")

    def judge_log(self, ledger: Any) -> None:
        """D1 and D2, from the log."""
        last: dict[str, int] = {}
        for unit in units(ledger):
            for name, stamps in written(unit).items():
                if not name.startswith(f"{DECLARED}s{self._number}-"):
                    continue
                self._judge(name, stamps, "the log")
                if isinstance(unit[0], BeginTransactionRecord):
                    self._crowd.facts["applies of several batches"] += 1
                last[name] = next(iter(stamps.values()))
                self._crowd.facts["applies in the log"] += 1
        for (kind, name), possible in self.possible.items():
            found = last.get(DECLARED + name)
            if kind == "declared" and found not in possible:
                self._crowd.fail(f"D2: {name} has stamp {found}, and may have {possible}")


def declaration(name: str, stamp: int, *, bad: bool) -> dict[str, Any]:
    """Return an apply of a group; with `bad` one of its items is refused."""
    configs = [
        {
            "resourceType": "group",
            "resourceName": name,
            "configs": {"consumer.session.timeout.ms": str(45_000 + stamp)},
        }
    ]
    configs += [
        {"resourceType": "client-metrics", "resourceName": f"{name}.{entry}", "configs": text}
        for text in [{"metrics": f"{stamp}." + "m" * LONG_TEXT}]
        for entry in range(_long(name))
    ]
    quotas = [{"entity": _user(name), "quotas": {"producer_byte_rate": stamp}}]
    if bad:
        quotas.append({"entity": _user(f"{name}-bad"), "quotas": {"producer_byte_rate": -1}})
    topic = {"name": name, "partitions": 1, "configs": {"retention.ms": str(stamp)}}
    return {"topics": [topic], "configs": configs, "quotas": quotas}


def why_not_whole(name: str, stamps: Stamps) -> str:
    """Return what is wrong with the things of a group that stand side by side; empty: nothing."""
    wanted = {"topic", "group", "quota", *(f"long-{n}" for n in range(_long(name)))}
    if stamps.keys() != wanted:
        return f"{sorted(stamps)} of {sorted(wanted)}"
    return f"{stamps}" if len(set(stamps.values())) > 1 else ""


def exported(pages: list[dict[str, Any]]) -> dict[str, Stamps]:
    """Return the stamps of each group in an export."""
    groups: dict[str, Stamps] = defaultdict(dict)
    for page in pages:
        for topic in page["topics"]:
            if topic["name"].startswith(DECLARED):
                groups[topic["name"]]["topic"] = int(topic["configs"].get("retention.ms", 0))
        for each in page["configs"]:
            for key, value in each["configs"].items():
                _note(groups, each["resourceName"], key, value)
        for each in page["quotas"]:
            (part, *_) = each["entity"]
            if str(part["entityName"]).startswith(DECLARED):
                value = each["values"]["producer_byte_rate"]
                groups[part["entityName"]]["quota"] = int(value)
    return groups


def units(ledger: Any) -> Iterator[list[Record]]:
    """Yield the records that became visible together: a batch, or a transaction that ended."""
    unit: list[Record] | None = None
    for batch in ledger.batches(0):
        records = decode_records(batch.records)
        if isinstance(records[0], BeginEpochRecord):
            unit = None  # A new epoch discards a transaction that is open.
        if isinstance(records[0], BeginTransactionRecord):
            unit = []
        if unit is None:
            yield records
            continue
        unit += records
        if isinstance(records[-1], EndTransactionRecord):
            yield unit
            unit = None
        elif isinstance(records[-1], AbortTransactionRecord):
            unit = None


def written(unit: list[Record]) -> dict[str, Stamps]:
    """Return the stamps of each group that a unit writes."""
    groups: dict[str, Stamps] = defaultdict(dict)
    for record in unit:
        if isinstance(record, ConfigRecord) and record.value is not None:
            _note(groups, record.resource_name, record.name, record.value)
        elif isinstance(record, ClientQuotaRecord):
            user = str(record.entity[0].entity_name)
            if user.startswith(DECLARED):
                groups[user]["quota"] = int(record.value)
    return groups


def _note(groups: dict[str, Stamps], resource: str, key: str, value: str) -> None:
    if not resource.startswith(DECLARED):
        return
    name, _, entry = resource.partition(".")
    if key == "retention.ms":
        groups[name]["topic"] = int(value)
    elif key == "metrics":
        groups[name][f"long-{entry}"] = int(value.partition(".")[0])
    else:
        groups[name]["group"] = int(value) - 45_000


def _long(name: str) -> int:
    """Return how many long entries a group has: those of every second declarer have some."""
    number = name.removeprefix(f"{DECLARED}s").partition("-")[0]
    return LONG_ENTRIES if int(number) % 2 == 0 else 0


def _user(name: str) -> list[dict[str, str]]:
    return [{"entityType": "user", "entityName": name}]
