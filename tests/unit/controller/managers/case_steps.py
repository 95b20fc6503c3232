"""Runs the cases of `cases/*.jsonl`: one case a line, named by the section that it comes from.

A case has what is given (`brokers`, `topics`, `config`), and `steps`. Brokers 1 to 3 are online
unless the case says otherwise. Each step is one of the methods of `CaseSteps`, with its arguments;
an `ask` says what it expects: the `code` of an error, or the `results` of its entries.
"""

import json
from pathlib import Path
from typing import Any

from metadata.features import BASE, METADATA_VERSION
from metadata.messages import SeenState, WantedState
from metadata.records import (
    ConfigRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    RequestOutcomeRecord,
)
from metadata.uuids import uuid_text
from tests.unit.controller.cluster import (
    CLUSTER_ID,
    DECLARED,
    SESSION_S,
    Broker,
    Cluster,
    keep_alive,
)

FOLDER = Path(__file__).parent / "cases"
_ENTRIES = ("topics", "partitions", "replicas")
"""The field of a reply that holds a result for each entry of the request."""


def load(name: str) -> list[dict[str, Any]]:
    """Return the cases of a file."""
    return [json.loads(line) for line in (FOLDER / f"{name}.jsonl").read_text().splitlines()]


def directory(name: str) -> bytes:
    """Return the id of a directory that a case names by a letter."""
    reserved = {"MIGRATING": 0, "UNASSIGNED": 1, "LOST": 2}
    return reserved[name].to_bytes(16, "big") if name in reserved else name.encode() * 16


def _values(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a partition as records hold them."""
    return {
        name: tuple(directory(letter) for letter in value)
        if name == "directories"
        else tuple(value)
        if isinstance(value, list)
        else value
        for name, value in fields.items()
    }


class CaseSteps:
    """One case on a cluster of one controller."""

    def __init__(self, case: dict[str, Any]) -> None:
        levels = BASE if case.get("low") else {}
        self.cluster: Any = Cluster(nodes=1, initial_features=levels, **case.get("config", {}))
        self.brokers: dict[int, Broker] = {}
        given = {"1": "online", "2": "online", "3": "online", **case.get("brokers", {})}
        self.dirs = {int(b): names for b, names in case.get("dirs", {}).items()}
        self.racks = {int(b): rack for b, rack in case.get("racks", {}).items()}
        for broker_id, state in given.items():
            self._begin(int(broker_id), state)
        for name, lists in case.get("topics", {}).items():
            self.cluster.assign(name, *lists)
        self._mark = self.cluster.image.offset

    def run(self, steps: list[dict[str, Any]]) -> None:
        for step in steps:
            name = next(iter(step))
            arguments = dict(step)
            getattr(self, name)(arguments.pop(name), **arguments)

    def _begin(self, broker_id: int, state: str) -> None:
        broker = self.brokers[broker_id] = Broker(
            self.cluster,
            broker_id,
            rack=self.racks.get(broker_id),
            log_dirs=tuple(map(directory, self.dirs.get(broker_id, ()))),
            features=DECLARED,
        )
        if state == "online":
            broker.bring_online()
        elif state == "fenced":
            broker.register()

    # -- what happens ----------------------------------------------------------------------

    def ask(
        self, request: list[Any], code: str | None = None, results: list[str] | None = None
    ) -> None:
        self.cluster.run(0.05)
        self._mark = self.cluster.image.offset
        status, reply = self.cluster.ask(*request)
        if code is not None:
            assert status >= 400, reply
            assert reply["code"] == code, reply
            self.cluster.run(0.05)
            assert self.cluster.image.offset == self._mark, "a refused request wrote something"
            return
        assert status == 200, reply
        entries = next(reply[name] for name in _ENTRIES if name in reply)
        codes = [(entry.get("error") or {}).get("code", "OK") for entry in entries]
        assert codes == (results or ["OK"] * len(codes)), reply

    def fence(self, broker_id: int) -> None:
        self.brokers[broker_id].fetch(WantedState.FENCED)
        self._until(lambda: self.cluster.broker(broker_id).fenced)

    def online(self, broker_id: int) -> None:
        broker = self.brokers[broker_id]
        while broker.fetch(WantedState.ONLINE).state is not SeenState.ONLINE:
            self.cluster.run(0.01)

    def stop(self, broker_id: int) -> None:
        self.brokers[broker_id].fetch(WantedState.STOPPING)
        self._until(lambda: not self.cluster.broker(broker_id).active)

    def restart(self, broker_id: int) -> None:
        """The process ends, and its session; a new one registers."""
        others = [broker for other, broker in self.brokers.items() if other != broker_id]
        keep_alive(self.cluster, others, SESSION_S + 1)
        self._begin(broker_id, "online")

    def isr(self, what: list[Any]) -> None:
        """The leader of a partition asks for an ISR."""
        self.cluster.alter_isr(self._key(what[0]), what[1])

    def assign(
        self,
        what: list[Any],
        code: str | None = None,
        results: list[str] | None = None,
        epoch: int | None = None,
    ) -> None:
        """A broker says in which directories its replicas lie; `?-0` is in no topic."""
        broker_id, rows = what
        replicas = []
        for name, letter in rows:
            unknown = name.startswith("?")
            topic, _, number = name.rpartition("-")
            topic_id = bytes(16) if unknown else self.cluster.image.topics.named(topic).topic_id
            replicas.append(
                {
                    "topicId": uuid_text(topic_id),
                    "partition": int(number),
                    "directory": uuid_text(directory(letter)),
                }
            )
        known = self.cluster.broker(broker_id).broker_epoch
        body = {
            "clusterId": CLUSTER_ID,
            "brokerEpoch": known if epoch is None else epoch,
            "replicas": replicas,
        }
        self.ask(["POST", f"/v1/brokers/{broker_id}/directories", body], code, results)

    def failed(self, what: list[Any]) -> None:
        """A heartbeat says which directories have failed."""
        broker_id, names = what
        texts = tuple(uuid_text(directory(name)) for name in names)
        self.brokers[broker_id].fetch(WantedState.ONLINE, offline_log_dirs=texts)
        self.cluster.run(0.1)

    def cordoned(self, what: list[Any]) -> None:
        """A heartbeat says which directories take no new replicas."""
        broker_id, names = what
        texts = tuple(uuid_text(directory(name)) for name in names)
        self.brokers[broker_id].fetch(WantedState.ONLINE, cordoned_log_dirs=texts)
        self.cluster.run(0.1)

    def register(self, what: list[Any], code: str) -> None:
        broker = Broker(self.cluster, what[0], log_dirs=tuple(map(directory, what[1])))
        error = broker.fetch(WantedState.FENCED).error
        assert error is not None
        assert error.code == code

    def level(self, level: int) -> None:
        self.cluster.write(FeatureLevelRecord(METADATA_VERSION, level))

    def mark(self, _now: bool) -> None:
        self._mark = self.cluster.image.offset

    def config(self, key: list[str]) -> None:
        self.cluster.write(ConfigRecord(2, *key))

    def change(self, what: list[Any]) -> None:
        """Write a change of a partition as it stands, whatever the rules say."""
        topic_id, number = self._key(what[0])
        values = _values(what[1])
        self.cluster.write(PartitionChangeRecord(number, topic_id, **values))

    def _until(self, happened: Any) -> None:
        self.cluster.run_until(happened)

    # -- what is expected ------------------------------------------------------------------

    def expect(self, partitions: dict[str, dict[str, Any]]) -> None:
        for name, fields in partitions.items():
            partition = self.cluster.image.topics.partitions[self._key(name)]
            seen = {field: getattr(partition, field) for field in fields}
            wanted = _values(fields)
            assert seen == wanted, name

    def records(self, types: list[str]) -> None:
        """The records of the last request, but for its outcome."""
        found = [
            type(record).__name__
            for record in self.cluster.records(self._mark)
            if not isinstance(record, RequestOutcomeRecord)
        ]
        assert found == types

    def replicas(self, counts: dict[str, int]) -> None:
        for name, count in counts.items():
            partition = self.cluster.image.topics.partitions[self._key(name)]
            assert len(set(partition.replicas)) == len(partition.replicas) == count

    def topics(self, names: list[str]) -> None:
        assert list(self.cluster.image.topics.names) == names

    def configs(self, of_topics: dict[str, dict[str, str]]) -> None:
        for name, wanted in of_topics.items():
            assert dict(self.cluster.image.configs.of(2, name)) == wanted

    def log_dirs(self, of_brokers: dict[str, list[str]]) -> None:
        for broker_id, names in of_brokers.items():
            assert self.cluster.broker(int(broker_id)).log_dirs == tuple(map(directory, names))

    def cordons(self, of_brokers: dict[str, list[str] | None]) -> None:
        for broker_id, names in of_brokers.items():
            wanted = None if names is None else tuple(map(directory, names))
            assert self.cluster.broker(int(broker_id)).cordoned_log_dirs == wanted

    def fenced(self, brokers: dict[str, bool]) -> None:
        assert {b: self.cluster.broker(int(b)).fenced for b in brokers} == brokers

    def listed(self, row: dict[str, Any]) -> None:
        """The one reassignment that is running."""
        _, reply = self.cluster.ask("GET", "/v1/reassignments")
        assert reply["partitions"] == [row]

    def held(self, counts: dict[str, int]) -> None:
        topics = self.cluster.image.topics
        assert {b: topics.replicas_on(int(b)) for b in counts} == counts

    def moving(self, names: list[str]) -> None:
        _, reply = self.cluster.ask("GET", "/v1/reassignments")
        assert [f"{p['topic']}-{p['partition']}" for p in reply["partitions"]] == names

    def _key(self, name: str) -> tuple[bytes, int]:
        topic, _, number = name.rpartition("-")
        known = self.cluster.image.topics.named(topic)
        assert known is not None
        return known.topic_id, int(number)
