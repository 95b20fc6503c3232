"""Asks public advisory sources about every locked package, by pip-audit.

Rule: the answer is one of three, and the check always says which. "Clean" needs an answer about
each package. A finding fails. Where no source answers in time, or not about all packages, the check
says "NOT CHECKED". That is no pass, and a release asks for one.

Advisories that don't concern us stand in `accepted_advisories.toml`, each with a reason and a day.
After that day the check fails again.
"""

import json
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from datetime import date
from enum import Enum
from pathlib import Path
from typing import Any, Final, NamedTuple

from packaging.utils import canonicalize_name

from releasing import ReleaseError
from releasing.locks import applies, read_lock

SOURCES: Final = ("osv", "pypi")
"""Asked in this order, until one answers. pip-audit knows their addresses."""
REQUEST_S: Final = 5
WHOLE_S: Final = 100
"""The check takes no longer than this."""
ACCEPTED: Final = Path(__file__).with_name("accepted_advisories.toml")


class AdvisoryVerdict(Enum):
    """What the check found."""

    CLEAN = "clean"
    FOUND = "found"
    NOT_CHECKED = "not checked"


class Advisory(NamedTuple):
    """A known vulnerability of a locked package."""

    package: str
    version: str
    ids: tuple[str, ...]
    fixed_in: tuple[str, ...]


class Checked(NamedTuple):
    """The outcome, with what there is to say about it."""

    verdict: AdvisoryVerdict
    lines: tuple[str, ...]


def check_advisories(
    lock: Path,
    accepted: dict[str, date],
    today: date,
    monotonic: Callable[[], float] = time.monotonic,
    *,
    whole_s: float = WHOLE_S,
    request_s: int = REQUEST_S,
    url: str = "",
) -> Checked:
    """Check all packages of a lock file that this Python needs. Raises ReleaseError.

    `accepted`: the last day by advisory. `url`: a source that speaks OSV's protocol, and then no
    other is asked.
    """
    expected = {entry.name for entry in read_lock(lock) if applies(entry)}
    until = monotonic() + whole_s
    silent = []
    for source in ("osv",) if url else SOURCES:
        left = until - monotonic()
        if left < 1:
            silent.append("the time is up")
            break
        answer = _ask(lock, source, left, request_s, url)
        if isinstance(answer, str):
            silent.append(f"{source}: {answer}")
            continue
        unanswered = sorted(expected - set(_answered(answer)))
        if unanswered:
            silent.append(f"{source}: no answer about {', '.join(unanswered[:5])}")
            continue
        return _judged(list(_advisories(answer)), accepted, today, len(expected), source)
    return Checked(
        AdvisoryVerdict.NOT_CHECKED,
        ("NOT CHECKED for known vulnerabilities: no advisory source answered", *silent),
    )


def read_accepted(file: Path = ACCEPTED) -> dict[str, date]:
    """Return the advisories that don't concern us, with the last day. Raises ReleaseError."""
    found: dict[str, date] = {}
    for entry in tomllib.loads(file.read_text()).get("accepted", []):
        match entry:
            case {"id": str() as name, "until": date() as until, "reason": str() as reason} if (
                reason.strip() and len(entry) == 3
            ):
                found[name] = until
            case _:
                raise ReleaseError(f"{file}: an entry has id, until (a day) and reason: {entry}")
    return found


def _judged(
    found: list[Advisory], accepted: dict[str, date], today: date, count: int, source: str
) -> Checked:
    bad, lines = False, []
    for one in found:
        until = max((accepted[name] for name in one.ids if name in accepted), default=None)
        fixed = f"fixed in {', '.join(one.fixed_in)}" if one.fixed_in else "no fixed version"
        line = f"{one.package} {one.version}: {', '.join(one.ids)}; {fixed}"
        if until is not None and today <= until:
            lines.append(f"{line}; accepted until {until}")
        else:
            bad = True
            lines.append(
                line if until is None else f"{line}; accepted until {until}, which is over"
            )
    said = f"{count} locked packages, asked {source}: {len(found)} known vulnerabilities"
    return Checked(AdvisoryVerdict.FOUND if bad else AdvisoryVerdict.CLEAN, (said, *lines))


def _ask(lock: Path, source: str, left_s: float, request_s: int, url: str) -> dict[str, Any] | str:
    """Return pip-audit's report, or why there is none."""
    command = [sys.executable, "-m", "pip_audit", "--requirement", str(lock), "--require-hashes"]
    command += ["--disable-pip", "--progress-spinner", "off", "--format", "json"]
    command += ["--vulnerability-service", source, "--timeout", str(request_s)]
    command += ["--osv-url", url] if url else []
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=left_s)
    except subprocess.TimeoutExpired:
        return f"no answer within {left_s:.0f} s"
    try:
        report = json.loads(done.stdout)
    except ValueError:
        last = [line for line in done.stderr.splitlines() if line.strip()][-1:]
        return (last or ["no report"])[0].strip()[-200:]
    if not isinstance(report, dict) or not isinstance(report.get("dependencies"), list):
        return "a report of another form"
    return report


def _answered(report: dict[str, Any]) -> Iterator[str]:
    return (
        canonicalize_name(one["name"]) for one in report["dependencies"] if "skip_reason" not in one
    )


def _advisories(report: dict[str, Any]) -> Iterator[Advisory]:
    for one in report["dependencies"]:
        for found in one.get("vulns", ()):
            ids = tuple(sorted({found["id"], *found.get("aliases", ())}))
            yield Advisory(one["name"], one["version"], ids, tuple(found.get("fix_versions", ())))
