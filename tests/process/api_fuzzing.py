"""Lets schemathesis ask a real controller what its OpenAPI document allows, and judge the answers.

    python -m tests.process.api_fuzzing [--examples 50]

Rule: the document is the one that the controller serves. schemathesis draws requests from it, good
and bad ones, and checks each answer: its status, its type, its headers and its body must be as the
document says, a bad request must be refused, and a wrong method must be told the right ones.
Without randomness, so that a run can be repeated.

- A sound cluster answers no request with 5xx.
- Without a quorum the only 5xx is 503, without room 503 and 507.

It can't know what only the state decides, such as whether a topic exists. So it doesn't check that
a good request is accepted.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from controller.http.routes import ROUTES, find_route
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
LIMIT_S = 600.0


class Fuzzed(NamedTuple):
    """What a run came to."""

    failed: bool
    said: str
    """All that schemathesis printed."""
    statuses: Counter[int]
    routes: frozenset[str]
    """The names of the routes that were asked."""

    def summary(self) -> str:
        """The end of what schemathesis printed, and the statuses."""
        _, _, summary = self.said.partition("= SUMMARY =")
        lines = [line for line in summary.splitlines()[1:] if line.strip()]
        return "\n".join([*lines, f"statuses: {dict(sorted(self.statuses.items()))}"])


def fuzz(
    cluster: RunningCluster,
    node: int,
    *,
    examples: int,
    server_errors: tuple[int, ...] = (),
    parameters: Mapping[str, str] | None = None,
    phases: str = "fuzzing",
) -> Fuzzed:
    """Ask one controller about so many times per route. `server_errors`: the 5xx that may be."""
    folder = Path(tempfile.mkdtemp(dir=cluster.folder))
    document = folder / "openapi.json"
    url = cluster.url(node)
    document.write_text(json.dumps(cluster.ask(url, "GET", "/v1/openapi.json").body))
    (folder / "settings.toml").write_text(
        _settings({**NO_WAIT, **(parameters or {})}, server_errors)
    )
    command = [sys.executable, "-m", "schemathesis.cli", "--config-file"]
    command += [str(folder / "settings.toml"), "run", str(document), "--url", url, "--no-color"]
    command += ["--header", f"authorization: Bearer {cluster.token}"]
    command += ["--tls-verify", cluster.local.file.ca, "--checks", _checks(phases)]
    command += ["--phases", phases, "--max-examples", str(examples), "--generation-deterministic"]
    command += ["--continue-on-failure", "--suppress-health-check", "all", "--warnings", "off"]
    command += ["--request-timeout", "30", "--report", "har"]
    command += ["--report-har-path", str(folder / "asked.har")]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=LIMIT_S, check=False, cwd=folder
    )
    statuses, routes = _asked(folder / "asked.har")
    return Fuzzed(done.returncode != 0, done.stdout + done.stderr, statuses, routes)


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


def _asked(report: Path) -> tuple[Counter[int], frozenset[str]]:
    statuses: Counter[int] = Counter()
    routes = set()
    for entry in json.loads(report.read_text())["log"]["entries"]:
        statuses[entry["response"]["status"]] += 1
        request = entry["request"]
        route = find_route(request["method"], urlsplit(request["url"]).path).route
        if route is not None:
            routes.add(route.name)
    return statuses, frozenset(routes)


def every_route() -> frozenset[str]:
    """The names of all routes."""
    return frozenset(route.name for route in ROUTES)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.process.api_fuzzing")
    parser.add_argument("--examples", type=int, default=50, help="per route and kind of run")
    given = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        cluster = RunningCluster(Path(folder), brokers=1)
        try:
            cluster.start()
            cluster.create("t")
            for phases, parameters in (("fuzzing", None), ("fuzzing", KNOWN), ("coverage", None)):
                found = fuzz(
                    cluster,
                    cluster.leader(),
                    examples=given.examples,
                    parameters=parameters,
                    phases=phases,
                )
                print(f"== {phases}{' of what exists' * bool(parameters)}\n{found.summary()}\n")
                if found.failed:
                    print(found.said)
                failed = failed or found.failed
            cluster.check_alive()
        finally:
            cluster.kill()
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
