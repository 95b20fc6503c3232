"""Brings the jars of a Kafka version from Maven's registry into a folder of the user's cache.

Rule: Maven fetches them, and refuses a file whose checksum is not the registry's. The SHA-256 of
each jar is kept beside the folder, and checked on every use, so a damaged cache is fetched again.
Only the first use of a version needs a network.

    CACHE/4.3.1-broker/*.jar      what Java gets, and nothing else
    CACHE/4.3.1-broker.sha256     digest and name, a line each
    CACHE/lock                    one process fetches at a time
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from logberg.kafka.kafka_error import KafkaError

TESTED_VERSIONS: Final = ("4.0.2", "4.1.2", "4.2.1", "4.3.1", "4.4.0")
"""The versions that `make kafka` runs. Any other is fetched, too, but nobody has tried it."""
DEFAULT_VERSION: Final = "4.3.1"
_FETCH_S: Final = 900
_TELL_EVERY_S: Final = 5.0
_VERSION: Final = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+(?:-[A-Za-z0-9]+)?")
_LOG4J: Final = "2.24.3"
_KAFKA: Final = "org.apache.kafka"

Say = Callable[[str], None]


class Jar(NamedTuple):
    """One Maven artifact. Maven adds what it depends on."""

    group: str
    name: str
    version: str = ""
    """Empty: the version of Kafka."""
    classifier: str = ""
    """`test` for the tests of an artifact, `sources` for its source files."""

    def as_dependency(self) -> str:
        """Return the element of a pom."""
        parts = {
            "groupId": self.group,
            "artifactId": self.name,
            "version": self.version or "${kafka}",
            "classifier": self.classifier,
        }
        inside = "".join(f"<{key}>{value}</{key}>" for key, value in parts.items() if value)
        return f"<dependency>{inside}</dependency>"


class JarSet(NamedTuple):
    """Jars that are fetched together, into one folder of a version."""

    name: str
    jars: tuple[Jar, ...]
    alone: bool = False
    """Without what the jars depend on."""


_LOGGING: Final = tuple(
    Jar("org.apache.logging.log4j", name, _LOG4J)
    for name in ("log4j-core", "log4j-slf4j-impl", "log4j-1.2-api")
)
BROKER: Final = JarSet("broker", (Jar(_KAFKA, "kafka_2.13"), *_LOGGING))
"""A broker, a controller, and StorageTool."""
TOOLS: Final = JarSet(
    "tools", (*BROKER.jars, Jar(_KAFKA, "kafka-tools"), Jar(_KAFKA, "kafka-shell"))
)
"""BROKER and Kafka's commands. 4.4.0 has not published these."""


def default_cache() -> Path:
    """Return the folder of Kafka's jars in the user's cache; `XDG_CACHE_HOME` moves it."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache, "logberg", "kafka")


def kafka_jars(
    version: str = DEFAULT_VERSION,
    cache: Path | None = None,
    wanted: JarSet = BROKER,
    say: Say = lambda _text: None,
) -> list[Path]:
    """Return the jars of a Kafka version, in the order of their names. Raises KafkaError.

    `say` is told if they have to be fetched, and now and then how far Maven is: about 100 jars,
    60 MB.
    """
    if not _VERSION.fullmatch(version):
        raise KafkaError(
            f"{version!r} is no version of Kafka; write one such as {DEFAULT_VERSION}."
        )
    cache = cache or default_cache()
    folder = cache / f"{version}-{wanted.name}"
    digests = cache / f"{folder.name}.sha256"
    with _only_one(cache):
        if not _is_whole(folder, digests):
            say(f"Maven fetches Kafka {version} ({wanted.name}) into {folder}; this happens once")
            _fetch(version, wanted, folder, digests, say)
    return sorted(folder.glob("*.jar"))


def class_path(jars: list[Path]) -> str:
    """Return what `java -cp` takes."""
    return os.pathsep.join(map(str, jars))


@contextmanager
def _only_one(cache: Path) -> Iterator[None]:
    try:
        cache.mkdir(parents=True, exist_ok=True)
        lock = (cache / "lock").open("w")
    except OSError as error:
        raise KafkaError(f"The cache for Kafka's jars can't be written: {error}") from None
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _is_whole(folder: Path, digests: Path) -> bool:
    """Whether the folder holds the jars that were once fetched, unchanged."""
    try:
        return bool(list(folder.iterdir())) and digests.read_text() == _digests(folder)
    except OSError:
        return False


def _digests(folder: Path) -> str:
    lines = (
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
        for path in sorted(folder.iterdir())
    )
    return "".join(lines)


def _fetch(version: str, wanted: JarSet, folder: Path, digests: Path, say: Say) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise KafkaError(
            "Kafka's jars come by Maven, and 'mvn' is not here (Debian: apt install maven). "
            f"Or copy the cache of another machine to {folder}, with {digests.name} beside it."
        )
    shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="fetch-", dir=folder.parent) as scratch:
        pom, fetched = Path(scratch, "pom.xml"), Path(scratch, "jars")
        pom.write_text(_pom(version, wanted))
        _run_maven(maven, pom, fetched, version, wanted, say)
        digests.write_text(_digests(fetched))
        # Last, so that a folder of this name is always whole.
        fetched.rename(folder)


def _pom(version: str, wanted: JarSet) -> str:
    dependencies = "".join(jar.as_dependency() for jar in wanted.jars)
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>logberg</groupId><artifactId>kafka-jars</artifactId><version>1</version>"
        f"<properties><kafka>{version}</kafka></properties>"
        f"<dependencies>{dependencies}</dependencies></project>\n"
    )


def _run_maven(maven: str, pom: Path, output: Path, version: str, wanted: JarSet, say: Say) -> None:
    command = [maven, "--batch-mode", "--strict-checksums", "--file", str(pom)]
    command += ["dependency:copy-dependencies", f"-DoutputDirectory={output}"]
    if wanted.alone:
        command += ["-DexcludeTransitive=true"]
    said = pom.with_name("maven.txt")
    with said.open("wb") as sink:
        process = subprocess.Popen(command, stdout=sink, stderr=subprocess.STDOUT)
    try:
        _wait_for_maven(process, said, say)
    except subprocess.TimeoutExpired:
        raise KafkaError(
            f"Maven did not bring Kafka {version} within {_FETCH_S} s. Look at the network, then "
            "try again."
        ) from None
    finally:
        process.kill()
        process.wait()
    if process.returncode != 0 or not output.is_dir():
        raise KafkaError(_why(said.read_text(errors="replace"), version, wanted))


_FETCHED: Final = re.compile(rb"^.*Downloaded from [^\n]*\.jar\b", re.MULTILINE)


def _wait_for_maven(process: subprocess.Popen[bytes], output: Path, say: Say) -> None:
    """Wait, and say how many jars have come. Raises subprocess.TimeoutExpired."""
    began = told = time.monotonic()
    while True:
        try:
            process.wait(_TELL_EVERY_S / 10)
        except subprocess.TimeoutExpired:
            now = time.monotonic()
            if now - began > _FETCH_S:
                raise
            if now - told >= _TELL_EVERY_S:
                told = now
                jars = len(_FETCHED.findall(output.read_bytes()))
                say(f"  {jars} jars after {now - began:.0f} s")
            continue
        return


_MISSING: Final = re.compile(r"[Cc]ould not find artifact ([\w.:-]+)")
_UNREACHABLE: Final = re.compile(
    r"Unknown host|UnknownHost|Connection refused|Connect timed out|connect timed out|"
    r"Network is unreachable|offline mode|transfer failed|Could not transfer"
)


def _why(said: str, version: str, wanted: JarSet) -> str:
    """Say in one sentence why Maven failed."""
    if _UNREACHABLE.search(said):
        return (
            f"Maven can't reach its registry, so Kafka {version} ({wanted.name}) can't be fetched. "
            "Its settings.xml may name a mirror."
        )
    missing = _MISSING.findall(said)
    if missing:
        return (
            f"Kafka {version} has not published {', '.join(sorted(set(missing)))}. "
            f"These versions are tried: {', '.join(TESTED_VERSIONS)}."
        )
    lines = [line for line in said.splitlines() if "ERROR" in line]
    return (
        f"Maven failed to bring Kafka {version}: {(lines or said.splitlines() or ['no output'])[0]}"
    )
