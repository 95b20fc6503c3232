"""Compiles our Java classes against Kafka's jars, once, into the user's cache.

Rule: the folder is named by what went in: the sources and Kafka's version. If Kafka's classes have
changed so that ours no longer fit, javac says so and no test runs.
"""

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from logberg.kafka.jars import class_path, default_cache
from logberg.kafka.kafka_error import KafkaError

SOURCES: Final = Path(__file__).parent / "java"
_COMPILE_S: Final = 180


def compiled(jars: Sequence[Path], version: str) -> Path:
    """Return the folder of our compiled classes. Raises KafkaError."""
    sources = sorted(SOURCES.rglob("*.java"))
    digest = hashlib.sha256(version.encode())
    for source in sources:
        digest.update(source.read_bytes())
    folder = default_cache() / f"{version}-our-classes-{digest.hexdigest()[:12]}"
    if not folder.is_dir():
        _compile(sources, jars, folder)
    return folder


def _compile(sources: Sequence[Path], jars: Sequence[Path], folder: Path) -> None:
    javac = shutil.which("javac")
    if javac is None:
        raise KafkaError(
            "'javac' is not here; Kafka's tests need a JDK 17 or later (Debian: apt install "
            "openjdk-17-jdk-headless)."
        )
    with tempfile.TemporaryDirectory(prefix="javac-", dir=folder.parent) as scratch:
        classes = Path(scratch, "classes")
        command = [
            javac,
            "--release",
            "17",
            "-nowarn",
            "-d",
            str(classes),
            "-cp",
            class_path([*jars]),
        ]
        done = subprocess.run(
            [*command, *map(str, sources)],
            capture_output=True,
            text=True,
            check=False,
            timeout=_COMPILE_S,
        )
        if done.returncode != 0:
            raise KafkaError(f"our classes don't fit to Kafka {folder.name}:\n{done.stderr}")
        # Last, so that a folder of this name is always whole. Another process may be quicker.
        if not folder.exists():
            classes.rename(folder)
