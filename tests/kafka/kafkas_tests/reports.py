"""Reads JUnit's report of one test class.

Rule: a test counts as not run only if our stand-in said so (NotOnLogbergException), or if the test
asked the stand-in for a part of a controller that it doesn't have. Every other one is a failure.
"""

import re
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple
from xml.etree import ElementTree as ET

_DISPLAY: Final = re.compile(r"display-name: (.*)")
_VARIANT: Final = re.compile(r",BrokerSecurityProtocol=PLAINTEXT,.*")
"""What Kafka's kit adds to the name of nearly every test."""
_CAUSE: Final = re.compile(r"^Caused by: (.*)", re.MULTILINE)
_SAID: Final = re.compile(r"NotOnLogbergException: (.*)")
_LACKS: Final = re.compile(r"NoSuch(?:Method|Field)Error: .*kafka\.server\.ControllerServer\.(\w+)")


class CaseEnd(StrEnum):
    """How a test ended."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    """Kafka's own annotation switches the test off."""
    NOT_RUN = "not run"
    """It needs what a controller outside the test's JVM can't have."""


class CaseReport(NamedTuple):
    """One test: a method, or one of its variants."""

    name: str
    end: CaseEnd
    why: str
    """The first line of a failure, or why it was not run; empty if it passed."""
    seconds: float


def read_reports(folder: Path) -> list[CaseReport]:
    """Return the tests of the reports that JUnit wrote into a folder; none: it wrote nothing."""
    return [test for path in sorted(folder.glob("TEST-*.xml")) for test in _tests(path)]


def _tests(path: Path) -> Iterator[CaseReport]:
    for case in ET.parse(path).getroot().iter("testcase"):
        said = "".join(text.text or "" for text in case.iter("system-out"))
        shown = _DISPLAY.search(said)
        name = case.get("name", "").partition("(")[0]
        variant = _VARIANT.sub("", shown[1].strip()) if shown else ""
        end, why = _end(case)
        full = variant if variant.startswith(name) else f"{name} {variant}".strip()
        seconds = float(case.get("time", "0").replace(",", ""))
        yield CaseReport(full, end, why, seconds)


def _end(case: ET.Element) -> tuple[CaseEnd, str]:
    failure = case.find("failure")
    if failure is None:
        failure = case.find("error")
    if failure is not None:
        text = failure.text or failure.get("message") or failure.get("type") or ""
        if said := _SAID.search(text):
            return CaseEnd.NOT_RUN, said[1].strip()
        if lacks := _LACKS.search(text):
            return CaseEnd.NOT_RUN, f"a controller's memory: ControllerServer.{lacks[1]}"
        first = (text.strip().splitlines() or ["no reason"])[0]
        return CaseEnd.FAILED, (_CAUSE.findall(text) or [first])[-1][:300]
    skipped = case.find("skipped")
    if skipped is not None:
        return CaseEnd.SKIPPED, (skipped.text or "").strip().partition("\n")[0]
    return CaseEnd.PASSED, ""
