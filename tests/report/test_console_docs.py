"""The console's page names what there is: options, pictures, views."""

import re

from audit.console.views import VIEWS
from logberg.commands.audit.serve import command
from tests.docs.source import ROOT

PAGE = ROOT / "docs" / "audit" / "console.md"


def test_the_page_names_options_that_there_are() -> None:
    known = {word for option in command.params for word in option.opts}
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", PAGE.read_text()))
    assert named <= known


def test_the_pictures_are_there() -> None:
    named = re.findall(r"\((\.\./pictures/[\w.-]+)\)", PAGE.read_text())
    assert named
    assert [one for one in named if not (PAGE.parent / one).is_file()] == []


def test_the_page_asks_for_views_that_there_are() -> None:
    script = (ROOT / "audit" / "console" / "static" / "views.js").read_text()
    asked = set(re.findall(r'(?:ask|more)\((?:list, )?"(\w+)"', script))
    assert asked
    assert asked <= set(VIEWS)
