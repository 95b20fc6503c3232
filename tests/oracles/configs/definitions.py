"""Turns what Definitions.java prints into `metadata/configs/kafka_definitions.json`.

python -m tests.oracles.configs.definitions < raw.json > metadata/configs/kafka_definitions.json
"""

import json
import sys
from typing import Any, TextIO

HEAD = {
    "source": (
        "Apache Kafka 4.4.0 (org.apache.kafka:kafka_2.13 on Maven Central), read from its classes "
        "LogConfig, AbstractKafkaConfig, GroupConfig, ClientMetricsConfigs, "
        "ServerTopicConfigSynonyms and DynamicBrokerConfig by "
        "tests/oracles/configs/Definitions.java. Names, types, defaults and limits only."
    ),
    "licence": (
        "Apache-2.0, https://www.apache.org/licenses/LICENSE-2.0; Apache Kafka is a product of the "
        "Apache Software Foundation"
    ),
}
SECTIONS = {
    "topic": "topic",
    "broker": "broker",
    "group": "group",
    "client-metrics": "clientMetrics",
}
PROBE = 7
"""Definitions.java asks each synonym what it makes of this."""


def definition(key: str, raw: dict[str, Any]) -> dict[str, Any]:
    out = {"type": raw["type"].lower(), "default": raw["default"]}
    limit = raw["validator"] or {"class": "None"}
    match limit["class"].split("$")[-1].split(".")[-1]:
        case "Range":
            out |= {bound: limit[bound] for bound in ("min", "max") if bound in limit}
        case "ValidString":
            out["oneOf"] = limit["validStrings"]
        case "CaseInsensitiveValidString":
            out |= {"oneOf": limit["validStrings"], "anyCase": True}
        case "NonEmptyString":
            out["nonEmpty"] = True
        case "ValidList":
            out["each"] = limit["validString"]
            if not limit["isEmptyAllowed"]:
                out["nonEmpty"] = True
        case "ThrottledReplicaListValidator":
            out["form"] = "throttled-replicas"
        case "LambdaValidator":
            out["form"] = "gzip-level"
        case "Validator" if "AutoOffsetReset" in limit["class"]:
            out["form"] = "auto-offset-reset"
        case "None" | "NonNullValidator":
            pass
        case other if "Quorum" in other:
            pass
        case other:
            raise SystemExit(f"{key}: {other} is not known here")
    if raw.get("internal"):
        out["internal"] = True
    return out


def converted(raw: dict[str, Any]) -> dict[str, dict[str, Any]]:
    kinds = {
        kind: {key: definition(key, each) for key, each in sorted(raw[section].items())}
        for kind, section in SECTIONS.items()
    }
    for key, synonyms in raw["topicSynonyms"].items():
        if key in kinds["topic"]:
            factors = [[name, int(value) // PROBE] for name, value in synonyms]
            kinds["topic"][key]["synonyms"] = factors
    for key, synonym in raw["groupSynonyms"].items():
        if synonym:
            kinds["group"][key]["synonyms"] = [[synonym, 1]]
    brokers = kinds["broker"]
    for key, mode in raw["dynamicModes"].items():
        brokers.setdefault(key, definition(key, raw["dynamicConfigBroker"].get(key, {})))
        brokers[key]["dynamic"] = mode
    for key in raw["dynamicSecurity"]:
        brokers[key]["perListener"] = True
    return {kind: dict(sorted(keys.items())) for kind, keys in kinds.items()}


def write(kinds: dict[str, dict[str, Any]], to: TextIO) -> None:
    """One key a line, so that a difference between releases can be read."""
    parts = [f" {json.dumps(name)}: {json.dumps(text)}" for name, text in HEAD.items()]
    for kind, keys in kinds.items():
        lines = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in keys.items())
        parts.append(f" {json.dumps(kind)}: {{\n{lines}\n }}")
    to.write("{\n" + ",\n".join(parts) + "\n}\n")


if __name__ == "__main__":
    write(converted(json.load(sys.stdin)), sys.stdout)
