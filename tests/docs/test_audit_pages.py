"""The pages of docs/audit do what they say: their commands run as they stand."""

from pathlib import Path

import pytest

from tests.docs.following import follow
from tests.docs.source import ROOT

pytestmark = [pytest.mark.process]


@pytest.mark.parametrize(
    ("page", "commands"),
    [("questions.md", 9), ("state.md", 13), ("findings.md", 3), ("pipeline.md", 5)],
)
def test_a_page_s_commands_run_as_they_stand(page: str, commands: int, tmp_path: Path) -> None:
    follow(ROOT / "docs" / "audit" / page, tmp_path, commands)
