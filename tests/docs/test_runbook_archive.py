"""The runbook's section about an archive that is gone, run as it stands."""

from pathlib import Path

import pytest

from ledger.segments import segment_bases
from tests.docs.test_runbook_recovery import shell_in, take
from tests.process.running_cluster import running

pytestmark = [pytest.mark.process, pytest.mark.slow]


def test_the_page_says_what_an_archive_that_is_gone_means(tmp_path: Path) -> None:
    archive = {"to": str(tmp_path / "archive"), "keep_bytes": 0, "every_ms": 200}
    small = {"segment_bytes": 20_000, "checkpoint_bytes": 20_000, "journal_tail_bytes": 10_000}
    with running(tmp_path / "logberg-data", 1, 1, archive=archive, **small) as cluster:
        number = 0

        def moved() -> bool:
            nonlocal number
            cluster.create(f"topic-{number}", partitions=40)
            number += 1
            names = (path.name for path in (cluster.data(1) / "log").glob("*.log"))
            return segment_bases(names)[0] > 0

        cluster.until(moved, "segments have left")
        cluster.stop()
    with shell_in(tmp_path) as shell:
        take(shell, "archive")
