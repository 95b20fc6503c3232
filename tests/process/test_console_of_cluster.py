"""The console over running controllers: it follows their log, and needs none of their files."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.process.running_cluster import PATIENCE_S, running
from tests.report.served import asked, serving

pytestmark = [pytest.mark.process, pytest.mark.slow]


def until(holds: Callable[[], Any]) -> Any:
    """Wait until something holds."""
    end = time.monotonic() + PATIENCE_S
    while not (found := holds()):
        assert time.monotonic() < end
        time.sleep(0.1)
    return found


def topics(url: str, at: str = "") -> list[str]:
    return [one["name"] for one in asked(url, f"state?table=topics&at={at}")[1]["items"]]


def test_the_console_follows_a_running_cluster(tmp_path: Path) -> None:
    with running(tmp_path / "cluster", controllers=1, brokers=1) as cluster:
        cluster.create("before")
        ca, token = cluster.local.file.ca, cluster.local.file.token_file
        options = ("--cluster-ca", str(ca), "--cluster-token-file", str(token))
        with serving(cluster.url(1), tmp_path / "index", *options) as url:
            assert topics(url) == ["before"]
            _, then = asked(url, "status")
            assert then["proof"]["state"] == "sound"
            cluster.create("after")
            until(lambda: topics(url) == ["after", "before"])
            assert topics(url, str(then["logEnd"])) == ["before"]
            _, said = asked(url, f"diff?from={then['logEnd']}&table=topics")
            assert [(one["name"], one["kind"]) for one in said["items"]] == [("after", "created")]
            _, found = asked(url, "search?topic=after&type=topic")
            _, record = asked(url, f"record?offset={found['items'][0]['offset']}")
            assert record["data"]["name"] == "after"
            assert record["operation"] == "CreateTopics"
        # A console of the files finds the same.
        with serving(cluster.data(1), tmp_path / "of-files") as url:
            assert topics(url) == ["after", "before"]
