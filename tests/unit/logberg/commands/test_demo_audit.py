"""The demo's claim about the audit: it holds for the made-up week, and it can fail."""

from pathlib import Path

import msgspec

from logberg.commands.demo_audit import WEEK, find_intruder


def test_the_first_finding_is_the_intruder(tmp_path: Path) -> None:
    found = find_intruder(tmp_path / WEEK)
    assert found is not None
    assert found.right
    assert "10.9.77.3" in found.finding.sentence
    elsewhere = msgspec.structs.replace(found.finding, offsets=(found.intrusion.stop,))
    assert not found._replace(finding=elsewhere).right
    assert not found._replace(finding=msgspec.structs.replace(elsewhere, offsets=())).right
