"""A cluster of an old release is upgraded node by node, and back on the way, while a client writes.

    python -m tests.releases.rolling       writes the picture and the figures of docs/upgrading.md

Rule: processes, certificates and folders are real; the old ones run from the old release's wheel.
One client writes as fast as it gets answers. When a controller doesn't answer or doesn't lead, it
asks the next one, as any client would.
"""

import http.client
import json
import re
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.instruments.vega_drawing import draw
from logberg.version import VERSION
from tests.deploy.panels import write_part
from tests.docs import source
from tests.docs.generate import table
from tests.process.mixed_cluster import NEW, MixedCluster, mixed
from tests.releases.old_release import OLD

PAGE = source.ROOT / "docs" / "upgrading.md"
PICTURE = source.ROOT / "docs" / "pictures" / "rolling-upgrade.svg"
NODES = ("controller-1", "controller-2", "controller-3", "broker-1", "broker-2")
QUIET_S = 4.0
"""Between two steps, so that the picture shows each one apart."""
_COLOURS = {"--ink": "#1f2328", "--muted": "#59636e", "--rule": "#8c959f", "--grid": "#eaeef2"}


class RollStep(NamedTuple):
    """What was done, and when; times are of one monotonic clock."""

    label: str
    began: float
    ended: float
    led: bool
    """The node led when it was stopped."""


class RollWriter:
    """Creates topics one after another on a thread, and notes when each was acknowledged."""

    def __init__(self, cluster: MixedCluster) -> None:
        self._cluster = cluster
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._context = cluster.context()
        self._at = 0
        self.acknowledged_at: list[float] = []
        self.failed: list[BaseException] = []

    def __enter__(self) -> "RollWriter":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        if self.failed:
            raise self.failed[0]

    def _write(self) -> None:
        try:
            while not self._done.is_set():
                with suppress(OSError, http.client.HTTPException):
                    self._write_at(self._at)
                self._at += 1
                time.sleep(0.01)
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that began this
            self.failed.append(error)

    def _write_at(self, turn: int) -> None:
        """Write at one controller until it doesn't lead. Raises OSError, HTTPException."""
        urls = self._cluster.local.controller_urls
        host = urls[turn % len(urls)].removeprefix("https://")
        connection = http.client.HTTPSConnection(host, timeout=2, context=self._context)
        headers = {
            "authorization": f"Bearer {self._cluster.token}",
            "content-type": "application/json",
            "accept": "application/json",
        }
        try:
            while not self._done.is_set():
                # Its number is used again until it is acknowledged: nothing is skipped.
                name = f"roll-{len(self.acknowledged_at)}"
                new = {"name": name, "numPartitions": 1, "replicationFactor": 1}
                connection.request("POST", "/v1/topics", json.dumps({"topics": [new]}), headers)
                answer = connection.getresponse()
                said = answer.read()
                # A request of before, whose answer was lost, may have made it.
                if answer.status != 200 and b"TOPIC_ALREADY_EXISTS" not in said:
                    assert answer.status in (421, 503, 507), said
                    return
                self.acknowledged_at.append(time.monotonic())
                self._cluster.acknowledged.append(name)
        finally:
            connection.close()


def roll(cluster: MixedCluster) -> list[RollStep]:
    """Upgrade all; one controller and one agent go back on the way. Then raise the levels."""
    steps: list[RollStep] = []

    def restart(name: str, build: str) -> None:
        child = next(child for child in cluster.local.children if child.name == name)
        leads = name == f"controller-{cluster.leader()}"
        began = time.monotonic()
        cluster.restart_as(child, build)
        what = "new" if build == NEW else "back"
        steps.append(RollStep(f"{name} {what}", began, time.monotonic(), leads))
        time.sleep(QUIET_S)

    time.sleep(QUIET_S)
    for name in ("controller-1", "controller-2"):
        restart(name, NEW)
    restart("controller-1", OLD)
    for name in ("controller-1", "controller-3"):
        restart(name, NEW)
    restart("broker-1", NEW)
    restart("broker-1", OLD)
    restart("broker-1", NEW)
    restart("broker-2", NEW)
    began = time.monotonic()
    cluster.until(cluster.raise_levels, "the levels are raised")
    steps.append(RollStep("levels raised", began, time.monotonic(), led=False))
    time.sleep(QUIET_S)
    return steps


def longest_pause_s(acknowledged_at: list[float], began: float, ended: float) -> float:
    """The longest time without an acknowledgement that begins or ends within a span."""
    gaps = [
        after - before
        for before, after in pairwise(acknowledged_at)
        if after > began and before < ended
    ]
    return max(gaps, default=0.0)


def roll_table(steps: list[RollStep], acknowledged_at: list[float]) -> str:
    """What each step cost."""
    rows = [
        (
            step.label,
            "yes" if step.led else "",
            f"{step.ended - step.began:.1f} s",
            f"{1000 * longest_pause_s(acknowledged_at, step.began, step.ended):.0f} ms",
        )
        for step in steps
    ]
    return table(("step", "it led", "took", "longest time without a write"), rows)


def picture(steps: list[RollStep], acknowledged_at: list[float]) -> str:
    """Writes in each second, and a line at each step, as an SVG file."""
    zero = acknowledged_at[0]
    counts = Counter(int(at - zero) for at in acknowledged_at)
    last = int(acknowledged_at[-1] - zero)
    bars = [{"at": second, "writes": counts[second]} for second in range(last)]
    marks = [{"at": step.began - zero, "label": step.label} for step in steps]
    x = {"type": "quantitative", "scale": {"domain": [0, last], "nice": False}}
    spec: dict[str, Any] = {
        "background": "#ffffff",
        "width": 960,
        "height": 220,
        "padding": {"left": 8, "right": 16, "top": 8, "bottom": 8},
        "layer": [
            {
                "data": {"values": bars},
                "mark": {"type": "area", "interpolate": "step-after", "color": "#9cc9f0"},
                "encoding": {
                    "x": {**x, "field": "at", "title": "seconds"},
                    "y": {"field": "writes", "type": "quantitative", "title": "writes a second"},
                },
            },
            {
                "data": {"values": marks},
                "mark": {"type": "rule", "color": "#1f2328", "strokeDash": [3, 3]},
                "encoding": {"x": {**x, "field": "at"}},
            },
            {
                "data": {"values": marks},
                "mark": {
                    "type": "text",
                    "angle": 270,
                    "align": "right",
                    "dx": -4,
                    "dy": 8,
                    "y": 0,
                    "fontSize": 11,
                },
                "encoding": {"x": {**x, "field": "at"}, "text": {"field": "label"}},
            },
        ],
    }
    svg = str(draw(spec, "Writes in each second while a cluster is upgraded node by node"))
    svg = re.sub(r"var\((--\w+)\)", lambda match: _COLOURS[match[1]], svg)
    return svg.replace("<svg ", '<svg font-family="Helvetica, Arial, sans-serif" ', 1) + "\n"


def rolled(folder: Path) -> tuple[list[RollStep], list[float]]:
    """Roll a cluster under load, and check that nothing was lost."""
    with mixed(folder, brokers=2, old=NODES) as cluster:
        with RollWriter(cluster) as writer:
            steps = roll(cluster)
        assert cluster.broker_states() == {1: "online", 2: "online"}
        cluster.check_nothing_lost()
    return steps, writer.acknowledged_at


def main() -> None:
    """Roll once, draw it, and write the page's figures."""
    with tempfile.TemporaryDirectory(prefix="logberg-roll-") as folder:
        steps, acknowledged_at = rolled(Path(folder))
    PICTURE.write_text(picture(steps, acknowledged_at))
    span_s = acknowledged_at[-1] - acknowledged_at[0]
    words = (
        f"Release {OLD} to {VERSION}: {len(acknowledged_at):,} writes in {span_s:.0f} s, all of "
        f"them there afterwards on each controller, in one history.\n\n"
    )
    write_part(PAGE, "roll", words + roll_table(steps, acknowledged_at))


if __name__ == "__main__":
    main()
