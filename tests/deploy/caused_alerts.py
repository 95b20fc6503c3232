"""Fires alerts by their real causes, on real clusters, before a real Prometheus.

    python -m tests.deploy.caused_alerts       writes the table of docs/operating/alerts.md

Rule: what can't be caused here has a reason in `NOT_CAUSED`. Each other alert must fire.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.deploy.alert_bench import FiredAlert
from tests.deploy.causes_days import of_days
from tests.deploy.causes_machine import of_data, of_machines
from tests.deploy.causes_nodes import of_doors, of_nodes
from tests.deploy.causes_places import of_places
from tests.deploy.panels import write_part
from tests.docs import source
from tests.docs.generate import table

PAGE = source.ROOT / "docs" / "operating" / "alerts.md"
STORIES: dict[str, Callable[[Path], list[FiredAlert]]] = {
    "nodes": of_nodes,
    "doors": of_doors,
    "machines": of_machines,
    "data": of_data,
    "places": of_places,
    "days": of_days,
}
NOT_CAUSED = {
    "LogbergHeadContradicted": "a log must be forged, which tests/rewrites does",
    "LogbergHeadsUnwitnessed": "a witness must be gone for minutes; tests/process/test_witness.py",
}


def fired_table(fired: list[FiredAlert]) -> str:
    """The table for the page."""
    rows = [
        (
            f"`{one.alert}`",
            one.cause,
            f"{one.labels}".replace("|", "\\|") or "the cluster",
            f"{one.after_s:.0f} s",
        )
        for one in fired
    ]
    rows += [(f"`{alert}`", f"not caused: {why}", "", "") for alert, why in NOT_CAUSED.items()]
    return table(("alert", "cause", "it named", "after"), rows)


def main() -> None:
    """Cause all, and write the page's table."""
    fired = []
    for name, story in STORIES.items():
        with tempfile.TemporaryDirectory(prefix=f"logberg-alerts-{name}-") as folder:
            fired += story(Path(folder))
        print(f"{name}: {len(fired)} alerts fired so far", flush=True)
    write_part(PAGE, "alerts", fired_table(fired))


if __name__ == "__main__":
    main()
