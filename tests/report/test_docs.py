"""docs/audit/report.md does what it says: its commands run as they stand."""

from pathlib import Path

import pytest

from tests.docs.following import follow
from tests.docs.pages import links
from tests.docs.source import ROOT

PAGE = ROOT / "docs" / "audit" / "report.md"
pytestmark = [pytest.mark.process]


def test_the_report_is_made_as_the_page_says(tmp_path: Path) -> None:
    follow(PAGE, tmp_path, 5)


def test_the_pictures_are_there_and_small() -> None:
    pictures = [PAGE.parent / link for link in links(PAGE) if link.endswith(".png")]
    assert len(pictures) == 3
    for picture in pictures:
        assert picture.read_bytes().startswith(b"\x89PNG")
        assert picture.stat().st_size < 300_000
