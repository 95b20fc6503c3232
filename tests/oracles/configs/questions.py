"""What Kafka is asked: one question a line, JSON.

Operations and resolution are rows of a table, each with the section that it is about. The
values of every key are made from its definition: its limits, one off, and what no key takes.

    python -m tests.oracles.configs.questions > questions.jsonl
"""

import json
from collections.abc import Iterator
from typing import Any

from metadata.configs.definitions import DEFINITIONS, KINDS, Definition

ON_THE_TOPIC = {"topics": ["t"]}
ON_BROKER_1 = {"brokers": ["1"]}
REMOTE = {"static": {"remote.log.storage.system.enable": "true"}, "topics": ["t"]}
LONG = "0:1," * 8192 + "0:11"
T, B, ALL = ("topic", "t"), ("broker", "1"), ("broker", "")
RETENTION, POLICY, MIN_ISR = "retention.ms", "cleanup.policy", "min.insync.replicas"
THROTTLED = "leader.replication.throttled.replicas"
OPERATIONS: list[tuple[str, str, dict[str, Any], list[tuple[Any, ...]]]] = [
    # SET, DELETE
    ("set", "a new value", ON_THE_TOPIC, [(*T, RETENTION, "set", "5")]),
    ("set", "two keys", ON_THE_TOPIC, [(*T, RETENTION, "set", "5"), (*T, "flush.ms", "set", "9")]),
    ("set", "not a number", ON_THE_TOPIC, [(*T, RETENTION, "set", "x")]),
    ("set", "one bad key of two: nothing is written", ON_THE_TOPIC,
     [(*T, MIN_ISR, "set", "2"), (*T, RETENTION, "set", "x")]),
    ("set", "one bad resource of two: the other is written", {"topics": ["t", "u"]},
     [(*T, MIN_ISR, "set", "2"), ("topic", "u", RETENTION, "set", "x")]),
    ("set", "longer than 32,767 bytes", ON_THE_TOPIC, [(*T, THROTTLED, "set", LONG)]),
    ("delete", "a value", {**ON_THE_TOPIC, "before": [[*T, RETENTION, "5"]]},
     [(*T, RETENTION, "delete", None)]),
    ("delete", "what is not there", ON_THE_TOPIC, [(*T, RETENTION, "delete", None)]),
    ("delete", "a key that Kafka does not know", ON_THE_TOPIC, [(*T, "foo", "delete", None)]),
    ("delete", "a stored key that Kafka does not know",
     {**ON_THE_TOPIC, "before": [[*T, "foo", "1"]]}, [(*T, "foo", "delete", None)]),
    # APPEND, SUBTRACT
    ("append", "to the default", ON_THE_TOPIC, [(*T, POLICY, "append", "compact")]),
    ("append", "to a value", {**ON_THE_TOPIC, "before": [[*T, POLICY, "compact"]]},
     [(*T, POLICY, "append", "delete")]),
    ("append", "what is there", {**ON_THE_TOPIC, "before": [[*T, POLICY, "compact"]]},
     [(*T, POLICY, "append", "compact")]),
    ("append", "what the default has", ON_THE_TOPIC, [(*T, POLICY, "append", "delete")]),
    ("append", "two entries", ON_THE_TOPIC, [(*T, THROTTLED, "append", "0:1,1:2")]),
    ("append", "commas at the end", ON_THE_TOPIC, [(*T, THROTTLED, "append", "0:1,,")]),
    ("append", "the cluster's value does not count",
     {**ON_THE_TOPIC, "before": [[*ALL, "log.cleanup.policy", "compact"]]},
     [(*T, POLICY, "append", "compact")]),
    ("append", "to a key that is no list", ON_THE_TOPIC, [(*T, RETENTION, "append", "5")]),
    ("append", "to a key that Kafka does not know", ON_THE_TOPIC, [(*T, "foo", "append", "5")]),
    ("append", "an entry that is not possible", ON_THE_TOPIC, [(*T, POLICY, "append", "burn")]),
    ("append", "to a list of client metrics", {},
     [("client-metrics", "m", "metrics", "append", "a")]),
    ("append", "to a broker's list", ON_BROKER_1, [(*B, "metric.reporters", "append", "a.B")]),
    ("subtract", "from the default", ON_THE_TOPIC, [(*T, POLICY, "subtract", "delete")]),
    ("subtract", "what is not there", {**ON_THE_TOPIC, "before": [[*T, POLICY, "compact"]]},
     [(*T, POLICY, "subtract", "delete")]),
    ("subtract", "everything", {**ON_THE_TOPIC, "before": [[*T, POLICY, "compact,delete"]]},
     [(*T, POLICY, "subtract", "delete,compact")]),
    ("subtract", "from a key that is no list", ON_THE_TOPIC, [(*T, RETENTION, "subtract", "5")]),
    # what is written
    ("equal", "a topic's value", {**ON_THE_TOPIC, "before": [[*T, RETENTION, "5"]]},
     [(*T, RETENTION, "set", "5")]),
    ("equal", "a broker's value is written again",
     {**ON_BROKER_1, "before": [[*B, "background.threads", "5"]]},
     [(*B, "background.threads", "set", "5")]),
    ("equal", "the cluster's value is written again",
     {"before": [[*ALL, "background.threads", "5"]]}, [(*ALL, "background.threads", "set", "5")]),
    ("equal", "a group's value",
     {"before": [["group", "g", "share.isolation.level", "read_committed"]]},
     [("group", "g", "share.isolation.level", "set", "read_committed")]),
    # which resources
    ("resource", "no such topic", {}, [(*T, RETENTION, "set", "5")]),
    ("resource", "no such topic, and the value is bad", {}, [(*T, RETENTION, "set", "x")]),
    ("resource", "the default of topics", {}, [("topic", "", RETENTION, "set", "5")]),
    ("resource", "no such broker", {}, [("broker", "7", MIN_ISR, "set", "2")]),
    ("resource", "a broker that is no number", {}, [("broker", "abc", MIN_ISR, "set", "2")]),
    ("resource", "a broker below 0", {}, [("broker", "-1", MIN_ISR, "set", "2")]),
    ("resource", "a controller", {}, [("broker", "9", MIN_ISR, "set", "2")]),
    ("resource", "the default of brokers", {}, [(*ALL, MIN_ISR, "set", "2")]),
    ("resource", "a group", {}, [("group", "g", "consumer.session.timeout.ms", "set", "50000")]),
    ("resource", "the default of groups", {},
     [("group", "", "consumer.session.timeout.ms", "set", "50000")]),
    ("resource", "a key that groups do not have", {}, [("group", "g", RETENTION, "set", "5")]),
    ("resource", "client metrics", {}, [("client-metrics", "m", "interval.ms", "set", "100")]),
    ("resource", "the default of client metrics", {},
     [("client-metrics", "", "interval.ms", "set", "100")]),
    ("resource", "a key that client metrics do not have", {},
     [("client-metrics", "m", "foo", "set", "1")]),
    ("resource", "a broker's logger", {}, [("broker-logger", "1", "x", "set", "INFO")]),
    ("resource", "a key that topics do not have", ON_THE_TOPIC, [(*T, "foo", "set", "1")]),
    ("resource", "a stored key that topics do not have stands in the way",
     {**ON_THE_TOPIC, "before": [[*T, "foo", "1"]]}, [(*T, RETENTION, "set", "5")]),
    ("resource", "a broker's key that Kafka does not know", ON_BROKER_1, [(*B, "foo", "set", "1")]),
    ("resource", "a broker's key that only its file sets", ON_BROKER_1,
     [(*B, "node.id", "set", "1")]),
    ("resource", "a key store without a listener", ON_BROKER_1,
     [(*B, "ssl.keystore.location", "set", "f")]),
    ("resource", "a key store of a listener", ON_BROKER_1,
     [(*B, "listener.name.x.ssl.keystore.location", "set", "f")]),
    ("resource", "a key store of all brokers", {},
     [(*ALL, "listener.name.x.ssl.keystore.location", "set", "f")]),
    ("resource", "a listener's limit that is no number", {},
     [(*ALL, "listener.name.x.max.connections", "set", "x")]),
    # keys that depend on each other
    ("together", "compaction lags", ON_THE_TOPIC,
     [(*T, "min.compaction.lag.ms", "set", "6"), (*T, "max.compaction.lag.ms", "set", "5")]),
    ("together", "a compaction lag and the controllers' own",
     {**ON_THE_TOPIC, "static": {"log.cleaner.max.compaction.lag.ms": "5"}},
     [(*T, "min.compaction.lag.ms", "set", "6")]),
    ("together", "a compaction lag and the stored one",
     {**ON_THE_TOPIC, "before": [[*T, "min.compaction.lag.ms", "6"]]},
     [(*T, "max.compaction.lag.ms", "set", "5")]),
    ("together", "tiered storage that is off", ON_THE_TOPIC,
     [(*T, "remote.storage.enable", "set", "true")]),
    ("together", "tiered storage that is on", REMOTE,
     [(*T, "remote.storage.enable", "set", "true")]),
    ("together", "tiered storage of a compacted topic",
     {**REMOTE, "before": [[*T, "remote.storage.enable", "true"]]},
     [(*T, POLICY, "set", "compact")]),
    ("together", "tiered storage is switched off",
     {**REMOTE, "before": [[*T, "remote.storage.enable", "true"]]},
     [(*T, "remote.storage.enable", "set", "false")]),
    ("together", "tiered storage is switched off, and its data deleted",
     {**REMOTE, "before": [[*T, "remote.storage.enable", "true"]]},
     [(*T, "remote.storage.enable", "set", "false"),
      (*T, "remote.log.delete.on.disable", "set", "true")]),
    ("together", "more is kept locally than at all",
     {**REMOTE, "before": [[*T, "remote.storage.enable", "true"]]},
     [(*T, "local.retention.ms", "set", "900000000")]),
    ("together", "everything is kept locally, not at all",
     {**REMOTE, "before": [[*T, "remote.storage.enable", "true"]]},
     [(*T, "local.retention.bytes", "set", "-1"), (*T, "retention.bytes", "set", "7")]),
    ("together", "without tiered storage that does not matter", ON_THE_TOPIC,
     [(*T, "local.retention.ms", "set", "900000000")]),
    ("together", "a group's heartbeat and its session",
     {"static": {"group.consumer.min.session.timeout.ms": "6000"}},
     [("group", "g", "consumer.session.timeout.ms", "set", "7000"),
      ("group", "g", "consumer.heartbeat.interval.ms", "set", "8000")]),
    ("together", "a group's limit that the controllers' own settings move",
     {"static": {"group.consumer.max.session.timeout.ms": "90000"}},
     [("group", "g", "consumer.session.timeout.ms", "set", "80000")]),
    # eligible leader replicas (KIP-966)
    ("elr", "a broker's min ISR", {**ON_BROKER_1, "elr": True}, [(*B, MIN_ISR, "set", "2")]),
    ("elr", "a broker's min ISR is deleted",
     {**ON_BROKER_1, "elr": True, "before": [[*B, MIN_ISR, "2"]]}, [(*B, MIN_ISR, "delete", None)]),
    ("elr", "the cluster's min ISR is deleted", {"elr": True, "before": [[*ALL, MIN_ISR, "2"]]},
     [(*ALL, MIN_ISR, "delete", None)]),
    ("elr", "the cluster's min ISR changes",
     {**ON_THE_TOPIC, "elr": True, "before": [[*ALL, MIN_ISR, "2"]]},
     [(*ALL, MIN_ISR, "set", "1")]),
    ("elr", "a topic's min ISR changes", {**ON_THE_TOPIC, "elr": True},
     [(*T, MIN_ISR, "set", "1")]),
    ("elr", "a topic's min ISR stays",
     {**ON_THE_TOPIC, "elr": True, "before": [[*T, MIN_ISR, "2"]]}, [(*T, MIN_ISR, "set", "2")]),
    ("elr", "a topic's min ISR is deleted",
     {**ON_THE_TOPIC, "elr": True, "before": [[*T, MIN_ISR, "2"]]},
     [(*T, MIN_ISR, "delete", None)]),
    ("elr", "without ELR nothing is cleared", ON_THE_TOPIC, [(*T, MIN_ISR, "set", "2")]),
]  # fmt: skip
"""(about, what, the state before, operations)"""

ALL_LEVELS: dict[str, Any] = {
    "topics": ["t"],
    "static": {"log.retention.hours": "2", MIN_ISR: "4", "unclean.leader.election.enable": "true"},
    "before": [[*ALL, "log.retention.ms", "6"], [*ALL, MIN_ISR, "3"],
               ["broker", "9", "log.retention.ms", "5"], [*B, "log.retention.ms", "1"],
               [*T, RETENTION, "4"]],
}  # fmt: skip
RESOLUTIONS: list[tuple[str, dict[str, Any], list[str]]] = [
    ("Kafka's default", ON_THE_TOPIC,
     [RETENTION, MIN_ISR, "unclean.leader.election.enable", POLICY]),
    ("the topic's own comes first", ALL_LEVELS, [RETENTION]),
    ("the node's comes before the cluster's",
     {**ALL_LEVELS, "before": ALL_LEVELS["before"][:4]}, [RETENTION]),
    ("another broker's does not count",
     {**ON_THE_TOPIC, "before": [[*B, "log.retention.ms", "1"]]}, [RETENTION]),
    ("the cluster's comes before the controllers' own",
     {**ALL_LEVELS, "before": ALL_LEVELS["before"][:2]}, [RETENTION, MIN_ISR]),
    ("the controllers' own come before the default", {**ALL_LEVELS, "before": []},
     [RETENTION, MIN_ISR, "unclean.leader.election.enable"]),
    ("hours", {**ON_THE_TOPIC, "static": {"log.retention.hours": "3"}}, [RETENTION]),
    ("minutes come before hours",
     {**ON_THE_TOPIC, "static": {"log.retention.hours": "3", "log.retention.minutes": "5"}},
     [RETENTION]),
    ("milliseconds come before minutes",
     {**ON_THE_TOPIC, "static": {"log.retention.minutes": "5", "log.retention.ms": "7"}},
     [RETENTION]),
    ("a key by the same name",
     {**ON_THE_TOPIC, "before": [[*ALL, "compression.type", "zstd"]]}, ["compression.type"]),
    ("a key by another name",
     {**ON_THE_TOPIC, "before": [[*ALL, "message.max.bytes", "77"]]}, ["max.message.bytes"]),
    ("the second synonym",
     {**ON_THE_TOPIC, "static": {"log.flush.scheduler.interval.ms": "8"}}, ["flush.ms"]),
    ("a key without a synonym", ON_THE_TOPIC, [THROTTLED, "remote.storage.enable"]),
    ("a deleted value",
     {**ON_THE_TOPIC, "before": [[*T, RETENTION, "4"], [*T, RETENTION, None]]}, [RETENTION]),
    ("an empty value is a value",
     {**ON_THE_TOPIC, "before": [[*T, POLICY, ""]]}, [POLICY]),
    ("unclean elections, by the topic against the cluster",
     {**ON_THE_TOPIC, "before": [[*ALL, "unclean.leader.election.enable", "true"],
                                 [*T, "unclean.leader.election.enable", "false"]]},
     ["unclean.leader.election.enable"]),
]  # fmt: skip
"""(what, the state, a topic's keys)"""

_NUMBERS = ["", "x", "-1", "0", "1", " 7 ", "+7", "1.5", "true", str(2**31 - 1), str(2**31),
            str(2**63), str(-(2**63))]  # fmt: skip
_BY_TYPE = {
    "boolean": ["true", "TRUE", " false ", "yes", "1", ""],
    "short": [*_NUMBERS, "32768"],
    "int": [*_NUMBERS, "1_0", "1e3", "0x10"],
    "long": _NUMBERS,
    "double": ["0.5", "", "1e-1", "x", "-0.1", "1.1", "NaN", "Infinity", " 0.5 ", "0,5"],
    "string": ["", "x", " producer "],
    "list": ["", "x", "a,b", "a,,b", "a,a", " a , b ", ","],
    "class": ["", "x"],
    "password": ["", "x"],
}
_BY_FORM = {
    "throttled-replicas": ["*", "0:1", "0:1,1:2", "0:1,*", "none", "0", "a:1", "0:", ":1", "-1:1"],
    "gzip-level": ["-1", "0", "1", "9", "10", "-2"],
    "auto-offset-reset": ["latest", "earliest", "LATEST", "by_duration:PT1H", "by_duration:-PT1H",
                          "by_duration:", "by_duration:x", "by_duration:P3D", "by_duration:P"],
}  # fmt: skip
_MATCHES = ["client_id=x", "client_id=[", "client_software_name=a.*,client_source_port=1",
            "foo=bar", "client_id", "client_id=", "client_id=a=b"]  # fmt: skip
_NAMES = {"topic": "t", "group": "g", "client-metrics": "m", "broker": ""}


def questions() -> Iterator[dict[str, Any]]:
    for about, what, state, operations in OPERATIONS:
        yield {"about": about, "what": what, **state, "ask": [list(each) for each in operations]}
    for what, state, keys in RESOLUTIONS:
        yield {"about": "resolution", "what": what, **state, "effective": ["t", *keys]}
    for kind, resource_type in KINDS.items():
        for key, definition in DEFINITIONS[resource_type].items():
            for value in _values(kind, definition):
                ask = [kind, _NAMES[kind], key, "set", value]
                yield {"about": "value", **ON_THE_TOPIC, "ask": [ask]}


def _values(kind: str, definition: Definition) -> list[str]:
    found = list(_BY_TYPE[definition.type])
    for bound in (definition.min, definition.max):
        if bound is not None and definition.type != "double":
            found += [str(bound - 1), str(bound), str(bound + 1)]
    for allowed in definition.one_of:
        found += [allowed, allowed.upper(), allowed.capitalize()]
    for allowed in definition.each:
        found += [allowed, allowed.upper(), f"{allowed},{allowed}"]
    found += [",".join(definition.each)] * bool(definition.each)
    found += _BY_FORM.get(definition.form, [])
    if kind == "client-metrics":
        found += ["99", "100", "3600000", "3600001", *_MATCHES]
    if kind == "broker" and not definition.dynamic:
        found = found[:1]
    return list(dict.fromkeys(found))


if __name__ == "__main__":
    for question in questions():
        print(json.dumps(question))
