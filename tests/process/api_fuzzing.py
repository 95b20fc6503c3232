"""Lets schemathesis ask a real controller what its OpenAPI document allows, and judge the answers.

    python -m tests.process.api_fuzzing [--examples 50]

Rule: the document is the one that the controller serves. schemathesis draws requests from it, good
and bad ones, and checks each answer: its status, its type, its headers and its body must be as the
document says, a bad request must be refused, and a wrong method must be told the right ones.
Without randomness, so that a run can be repeated.

- A sound cluster answers no request with 5xx.
- Without a quorum the only 5xx is 503, without room 503 and 507.

It can't know what only the state decides, such as whether a topic exists. So it doesn't check that
a good request is accepted. Three kinds of run come nearer to what a state allows:

- with the names of what exists (`KNOWN`);
- with a broker's own credential, for the routes that only brokers may ask (`Speaker`). The document
  is narrowed to that broker's id, epoch and process, so that its requests are answered;
- in sequences (the phase `stateful`): one request needs what the answer to another one says.
  schemathesis infers some of these links from the document, and `LINKS` has the others.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from controller.http.routes import ROUTES, find_route
from metadata.features import SUPPORTED
from metadata.messages.versions import NEWEST, VERSION_HEADER
from metadata.uuids import uuid_text
from tests.process.running_cluster import RunningCluster

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "unsupported_method",
    "allow_header_conformance",
)
NOT_IN_COVERAGE = ("negative_data_rejection", "allow_header_conformance")
"""The phase `coverage` takes an unknown header for a bad request, and doesn't know that the user
`scram` is described at /v1/users/scram, where credentials are changed."""
NO_WAIT = {"waitMs": "0"}
"""A held request would only take time."""
KNOWN = {"name": "t", "topic": "t", "partition": "0", "id": "1", "type": "topic"}
"""What exists in the cluster, for paths."""
BROKER_ID = 9
"""A broker that only this program speaks for: no agent runs for it."""
OWN = {"id": str(BROKER_ID)}
OF_BROKERS = (
    "/v1/metadata/fetch",
    "/v1/partitions/alter",
    "/v1/brokers/{id}/directories",
    "/v1/producer-ids",
)
LINKS = (
    ("list_topics", "describe_topic", {"name": "$response.body#/topics/0/name"}),
    ("list_topics", "describe_partition", {"topic": "$response.body#/topics/0/name"}),
    ("create_topics", "describe_topic", {"name": "$response.body#/topics/0/name"}),
    ("create_topics", "delete_topic", {"name": "$response.body#/topics/0/name"}),
    ("list_brokers", "describe_broker", {"id": "$response.body#/brokers/0/brokerId"}),
    ("list_brokers", "explain_broker", {"id": "$response.body#/brokers/0/brokerId"}),
    ("list_snapshots", "read_snapshot", {"id": "$response.body#/snapshots/0/id"}),
    ("list_segments", "read_segment", {"base": "$response.body#/segments/0/baseOffset"}),
    ("create_token", "renew_token", {"id": "$response.body#/token/tokenId"}),
    ("create_token", "expire_token", {"id": "$response.body#/token/tokenId"}),
)
"""A request, the one behind it, and where the answer to the first has the second's parameters."""
LIMIT_S = 600.0


class Fuzzed(NamedTuple):
    """What a run came to."""

    failed: bool
    said: str
    """All that schemathesis printed."""
    statuses: Counter[int]
    asked: Counter[tuple[str, int]]
    """By the name of a route and a status: how many requests."""

    @property
    def routes(self) -> frozenset[str]:
        """The names of the routes that were asked."""
        return frozenset(name for name, _ in self.asked)

    @property
    def accepted(self) -> frozenset[str]:
        """The names of the routes that answered 2xx at least once."""
        return frozenset(name for name, status in self.asked if 200 <= status < 300)

    def summary(self) -> str:
        """The end of what schemathesis printed, and the statuses."""
        _, _, summary = self.said.partition("= SUMMARY =")
        lines = [line for line in summary.splitlines()[1:] if line.strip()]
        return "\n".join(
            [
                *lines,
                f"statuses: {dict(sorted(self.statuses.items()))}",
                f"routes: {len(self.routes)} asked, {len(self.accepted)} answered 2xx",
            ]
        )


class Speaker(NamedTuple):
    """A registered broker, for which requests are made."""

    token: str
    envelope: Mapping[str, Any]
    """Who speaks: fields of a request's body, and the only value that each may have."""
    about: Mapping[str, Any]
    """What there is to speak of: fields, and a value that is right."""

    def narrowed(self, document: Mapping[str, Any], *, good: bool) -> dict[str, Any]:
        """Return a document with the routes of brokers only, and these values in their bodies.

        `good`: with the values of `about`, too. A request with another one is no bad request, so a
        run that also draws bad requests can't have them.
        """
        values = {**self.envelope, **(self.about if good else {})}
        paths = {path: document["paths"][path] for path in OF_BROKERS}
        schemas = dict(document["components"]["schemas"])
        for name in _named([path["post"]["requestBody"] for path in paths.values()], schemas):
            properties = schemas[name].get("properties", {})
            known = {key: {"enum": [values[key]]} for key in properties if key in values}
            schemas[name] = {**schemas[name], "properties": {**properties, **known}}
        return {
            **document,
            "paths": paths,
            "components": {**document["components"], "schemas": schemas},
        }


def _named(part: Any, schemas: Mapping[str, Any]) -> set[str]:
    """Return the names of the schemas that a part of a document refers to, and those refer to."""
    found: set[str] = set()
    left = [part]
    while left:
        match left.pop():
            case {"$ref": str(reference)}:
                name = reference.rpartition("/")[2]
                if name not in found:
                    found.add(name)
                    left.append(schemas[name])
            case dict(each):
                left += each.values()
            case list(each):
                left += each
    return found


def speaker(cluster: RunningCluster) -> Speaker:
    """Register a broker of our own, bring it online, and let it lead a partition."""
    token = cluster.token_of(f"Broker:{BROKER_ID}")
    url = cluster.url(cluster.leader())
    incarnation, directory = (uuid_text(letter * 16) for letter in (b"i", b"d"))
    cluster_id = cluster.status(cluster.leader())["clusterId"]
    features = [
        {"name": name, "minSupportedVersion": least, "maxSupportedVersion": most}
        for name, (least, most) in SUPPORTED.items()
    ]
    said: dict[str, Any] = {
        "clusterId": cluster_id,
        "brokerId": BROKER_ID,
        "incarnationId": incarnation,
    }
    registration = {
        "endpoints": [{"name": "PLAINTEXT", "host": "localhost", "port": 9000 + BROKER_ID}],
        "features": features,
        "logDirs": [directory],
    }

    def fetch(**more: Any) -> dict[str, Any]:
        headers = {VERSION_HEADER: str(NEWEST)}
        answer = cluster.ask(
            url, "POST", "/v1/metadata/fetch", {**said, **more}, token=token, headers=headers
        )
        assert answer.status == 200, answer
        reply: dict[str, Any] = answer.body
        return reply

    said["brokerEpoch"] = fetch(registration=registration)["brokerEpoch"]
    applied = {"fetchedOffset": said["brokerEpoch"] + 1, "appliedOffset": said["brokerEpoch"] + 1}
    cluster.until(
        lambda: fetch(**applied, wantedState="online")["state"] == "online", "the broker is online"
    )
    topic = {"name": "led", "assignments": [{"partitionIndex": 0, "brokerIds": [BROKER_ID]}]}
    made = cluster.ask(url, "POST", "/v1/topics", {"topics": [topic]})
    assert made.status == 200, made
    envelope = {name: said[name] for name in said if name != "incarnationId"}
    about = {
        "topicName": "led",
        "topicId": made.body["topics"][0]["topicId"],
        "partitionIndex": 0,
        "partition": 0,
        "leaderEpoch": 0,
        "partitionEpoch": 0,
        "directory": directory,
        "fetchedOffset": 0,
        "fetchedEpoch": -1,
        "appliedOffset": 0,
        "newIsrWithEpochs": [{"brokerId": BROKER_ID}],
        "offlineLogDirs": [],
        "cordonedLogDirs": [],
        "registration": None,
    }
    return Speaker(token, {**envelope, "incarnationId": incarnation}, about)


def fuzz(
    cluster: RunningCluster,
    node: int,
    *,
    examples: int,
    server_errors: tuple[int, ...] = (),
    parameters: Mapping[str, str] | None = None,
    phases: str = "fuzzing",
    speaking: Speaker | None = None,
    good: bool = False,
) -> Fuzzed:
    """Ask one controller about so many times per route. `server_errors`: the 5xx that may be.

    `speaking`: ask with this broker's credential, and only what brokers ask. `good`: draw no bad
    requests.
    """
    folder = Path(tempfile.mkdtemp(dir=cluster.folder))
    document = folder / "openapi.json"
    url = cluster.url(node)
    served = cluster.ask(url, "GET", "/v1/openapi.json").body
    if speaking is not None:
        served = speaking.narrowed(served, good=good)
    elif phases == "stateful":
        served = _linked(served)
    document.write_text(json.dumps(served))
    (folder / "settings.toml").write_text(
        _settings({**NO_WAIT, **(parameters or {})}, server_errors)
    )
    command = [sys.executable, "-m", "schemathesis.cli", "--config-file"]
    command += [str(folder / "settings.toml"), "run", str(document), "--url", url, "--no-color"]
    command += [
        "--header",
        f"authorization: Bearer {speaking.token if speaking else cluster.token}",
    ]
    command += ["--tls-verify", cluster.local.file.ca, "--checks", _checks(phases)]
    command += ["--mode", "positive" if good else "all"]
    command += ["--phases", phases, "--max-examples", str(examples), "--generation-deterministic"]
    command += ["--continue-on-failure", "--suppress-health-check", "all", "--warnings", "off"]
    command += ["--request-timeout", "30", "--report", "har"]
    command += ["--report-har-path", str(folder / "asked.har")]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=LIMIT_S, check=False, cwd=folder
    )
    statuses, asked = _asked(folder / "asked.har")
    return Fuzzed(done.returncode != 0, done.stdout + done.stderr, statuses, asked)


def _linked(document: dict[str, Any]) -> dict[str, Any]:
    """Add the links to a document, and leave out what a request need not have.

    Drawn tokens of pages and drawn offsets are refused, and then there is no answer to go on from.
    """
    operations = {
        operation["operationId"]: operation
        for path in document["paths"].values()
        for operation in path.values()
    }
    for operation in operations.values():
        operation["parameters"] = [each for each in operation["parameters"] if each.get("required")]
    for before, after, parameters in LINKS:
        good = operations[before]["responses"]["200"]
        link = {"operationId": after, "parameters": parameters}
        good.setdefault("links", {})[after] = link
    return document


def _checks(phases: str) -> str:
    left_out = NOT_IN_COVERAGE if phases == "coverage" else ()
    return ",".join(check for check in CHECKS if check not in left_out)


def _settings(parameters: Mapping[str, str], server_errors: tuple[int, ...]) -> str:
    fine = json.dumps(["2xx", "3xx", "4xx", *map(str, server_errors)])
    refused = json.dumps(["4xx", *map(str, server_errors)])
    given = "\n".join(f"{name} = {json.dumps(value)}" for name, value in parameters.items())
    return (
        f"[parameters]\n{given}\n"
        f"[checks.not_a_server_error]\nexpected-statuses = {fine}\n"
        f"[checks.negative_data_rejection]\nexpected-statuses = {refused}\n"
    )


def _asked(report: Path) -> tuple[Counter[int], Counter[tuple[str, int]]]:
    statuses: Counter[int] = Counter()
    asked: Counter[tuple[str, int]] = Counter()
    for entry in json.loads(report.read_text())["log"]["entries"]:
        statuses[entry["response"]["status"]] += 1
        request = entry["request"]
        route = find_route(request["method"], urlsplit(request["url"]).path).route
        if route is not None:
            asked[route.name, entry["response"]["status"]] += 1
    return statuses, asked


def every_route() -> frozenset[str]:
    """The names of all routes."""
    return frozenset(route.name for route in ROUTES)


def routes_of_brokers() -> frozenset[str]:
    """The names of the routes that brokers ask."""
    return frozenset(route.name for route in ROUTES if route.path in OF_BROKERS)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.process.api_fuzzing")
    parser.add_argument("--examples", type=int, default=50, help="per route and kind of run")
    given = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        cluster = RunningCluster(Path(folder), brokers=1, principals=(f"Broker:{BROKER_ID}",))
        try:
            cluster.start()
            cluster.create("t")
            runs: list[tuple[str, dict[str, Any]]] = [
                ("fuzzing", {}),
                ("fuzzing of what exists", {"parameters": KNOWN}),
                ("coverage", {"phases": "coverage"}),
                ("stateful", {"phases": "stateful"}),
                *(
                    ("fuzzing as a broker", {"speaking": spoken, "parameters": OWN, "good": good})
                    for spoken in (speaker(cluster),)
                    for good in (True, False)
                ),
            ]
            for name, how in runs:
                found = fuzz(cluster, cluster.leader(), examples=given.examples, **how)
                print(f"== {name}\n{found.summary()}\n")
                if found.failed:
                    print(found.said)
                failed = failed or found.failed
            # A drawn request may have unregistered the broker, whose process then ends.
            ended = [n for n, child in cluster.local.controllers.items() if not child.running]
            if ended:
                print(f"controllers that have ended: {ended}")
                failed = True
        finally:
            cluster.kill()
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
