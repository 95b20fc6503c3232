"""Runs cases of the replication rules on a real controller, over HTTP: steps, then the state.

A case starts with one partition: replicas 1, 2 and 3, all in sync, leader 1, all epochs 0, and a
min ISR of 2. A step is a few words, for example `fence 1` or `alter 2: 1,2,3`. `Case.state` shows
the partition as `leader 2, isr 2 3, elr -, last -, le 1, pe 1`.
"""

from typing import Any

import msgspec

from metadata.features import ELR_VERSION
from metadata.messages import WantedState
from metadata.records import (
    FeatureLevelRecord,
    PartitionChangeRecord,
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

TOPIC = "t"


class Case:
    """One controller, brokers 1 to 4, and a topic."""

    def __init__(
        self, *, elr: bool = False, partitions: int = 1, features: Any = DECLARED, **config: Any
    ) -> None:
        self.cluster: Any = Cluster(nodes=1, min_insync_replicas=2, **config)
        # Each broker has one log directory of its own.
        self.brokers = {
            number: Broker(
                self.cluster, number, log_dirs=(_directory(number),), features=features
            ).bring_online()
            for number in (1, 2, 3, 4)
        }
        self.cluster.assign(TOPIC, *[(1, 2, 3)] * partitions)
        if elr:
            self.cluster.write(FeatureLevelRecord(ELR_VERSION, 1))

    @property
    def topic_id(self) -> bytes:
        topic_id: bytes = self.cluster.image.topics.named(TOPIC).topic_id
        return topic_id

    @property
    def state(self) -> str:
        p = self.partition
        sets = f"isr {_ids(p.isr)}, elr {_ids(p.elr)}, last {_ids(p.last_known_elr)}"
        recovering = ", recovering" if p.leader_recovery_state else ""
        return f"leader {p.leader}, {sets}, le {p.leader_epoch}, pe {p.partition_epoch}{recovering}"

    @property
    def partition(self) -> Any:
        return self.cluster.partition(TOPIC)

    def run(self, steps: str) -> str:
        """Do the steps, which stand between semicolons. Returns what the last one was answered."""
        answer = ""
        for step in steps.split(";"):
            name, _, rest = step.strip().partition(" ")
            if name:
                answer = getattr(self, f"_{name}")(rest.strip()) or ""
        return answer

    # -- events of brokers ------------------------------------------------------------------

    def _fence(self, broker: str) -> None:
        self.brokers[int(broker)].fetch(WantedState.FENCED)
        self.cluster.run_until(lambda: self.cluster.broker(int(broker)).fenced)

    def _unfence(self, broker: str) -> None:
        self.brokers[int(broker)].bring_online()
        self.cluster.run(0.1)

    def _stop(self, broker: str) -> None:
        self.brokers[int(broker)].fetch(WantedState.STOPPING)
        self.cluster.run(0.1)

    def _unregister(self, broker: str) -> None:
        status, reply = self.cluster.ask("DELETE", f"/v1/brokers/{broker}", query={"force": "true"})
        assert status == 200, reply

    def _restart(self, words: str) -> None:
        """`restart 2`: a new process; `restart 2 clean`: it names the epoch of the last one."""
        number, _, how = words.partition(" ")
        old = self.brokers.pop(int(number))
        alive = [b for b in self.brokers.values() if not self.cluster.broker(b.broker_id).fenced]
        keep_alive(self.cluster, alive, SESSION_S + 1)
        new = self.brokers[int(number)] = Broker(self.cluster, int(number), features=DECLARED)
        if how == "clean":
            new.registration = msgspec.structs.replace(
                new.registration, previous_broker_epoch=old.epoch
            )
        new.register()

    def _offline(self, broker: str) -> None:
        """The broker's log directory fails; the broker itself goes on."""
        directories = (uuid_text(_directory(int(broker))),)
        self.brokers[int(broker)].fetch(offline_log_dirs=directories)
        self.cluster.run(0.1)

    # -- settings ---------------------------------------------------------------------------

    def _configure(self, words: str) -> None:
        """`configure min.insync.replicas=1`: of the topic."""
        key, _, value = words.partition("=")
        body = {"configs": [{"name": key, "value": value, "operation": "set"}]}
        status, reply = self.cluster.ask("PATCH", f"/v1/configs/topic/{TOPIC}", body)
        assert status == 200, reply

    def _unclean(self, _: str) -> None:
        self._configure("unclean.leader.election.enable=true")

    def _change(self, words: str) -> None:
        """`change isr=1,2 leader=1`: write a state that no rule leads to as quickly."""
        fields: dict[str, Any] = {}
        for word in words.split():
            name, _, value = word.partition("=")
            single = name in ("leader", "leader_recovery_state")
            fields[name] = int(value) if single else tuple(int(v) for v in value.split(",") if v)
        self.cluster.write(PartitionChangeRecord(0, self.topic_id, **fields))

    # -- requests ---------------------------------------------------------------------------

    def _alter(self, words: str) -> str:
        """`alter 2: 1,2,3 le=1 pe=1 epoch=99 state=1 member=3@7 partition=5 topic=x id=…`."""
        who, _, rest = words.partition(":")
        isr, *options = rest.split()
        return self.alter(int(who), isr, **dict(option.split("=") for option in options))

    def alter(self, broker_id: int, isr: str, **given: str) -> str:
        p, index = self.partition, int(given.get("partition", 0))
        members = [
            {"brokerId": int(m.split("@")[0]), "brokerEpoch": int((m + "@-1").split("@")[1])}
            for m in isr.split(",")
            if m != "-"
        ]
        topic: dict[str, Any] = {"topicId": given.get("id", uuid_text(self.topic_id))}
        if "topic" in given:
            topic = {"topicName": given["topic"]}
        wanted = {
            "partitionIndex": index,
            "leaderEpoch": int(given.get("le", p.leader_epoch)),
            "partitionEpoch": int(given.get("pe", p.partition_epoch)),
            "newIsrWithEpochs": members,
            "leaderRecoveryState": int(given.get("state", p.leader_recovery_state)),
        }
        body = {
            "clusterId": CLUSTER_ID,
            "brokerId": broker_id,
            "brokerEpoch": int(given.get("epoch", self.brokers[broker_id].epoch)),
            "topics": [{**topic, "partitions": [wanted]}],
        }
        status, reply = self.cluster.ask("POST", "/v1/partitions/alter", body)
        if status != 200:
            return str(reply["code"])
        return said(reply["topics"][0]["partitions"][0])

    def _prefer(self, _: str) -> str:
        return self.elect("PREFERRED")

    def elect(self, kind: str, partition: int = 0, topic: str = TOPIC) -> str:
        body = {
            "electionType": kind,
            "topicPartitions": [{"topic": topic, "partitions": [partition]}],
        }
        status, reply = self.cluster.ask("POST", "/v1/partitions/elect", body)
        assert status == 200, reply
        found = reply["replicaElectionResults"][0]["partitionResult"][0]
        return found["error"]["code"] if found["error"] else f"leader {found['leaderId']}"

    def _reassign(self, replicas: str) -> None:
        wanted = [int(r) for r in replicas.split(",")]
        body = {"partitions": [{"topic": TOPIC, "partition": 0, "replicas": wanted}]}
        status, reply = self.cluster.ask("POST", "/v1/reassignments", body)
        assert status == 200, reply


def _directory(broker_id: int) -> bytes:
    return bytes([0xD0 + broker_id]) * 16


def said(answer: dict[str, Any]) -> str:
    """An answer about one partition in words."""
    if answer["error"] is not None:
        return str(answer["error"]["code"])
    return (
        f"leader {answer['leaderId']}, isr {_ids(answer['isr'])}, le {answer['leaderEpoch']}, "
        f"pe {answer['partitionEpoch']}"
    )


def _ids(ids: Any) -> str:
    return " ".join(map(str, ids)) or "-"
