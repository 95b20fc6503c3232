"""The jars of Kafka's own tests, and the test classes in them."""

import re
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from logberg.kafka.jars import TOOLS, Jar, JarSet

VERSION: Final = "4.3.1"
"""The one version that has published the integration tests of its clients."""
_KAFKA: Final = "org.apache.kafka"
_TESTS_OF: Final = (
    "kafka-clients-integration-tests",
    "kafka_2.13",
    "kafka-clients",
    "kafka-metadata",
    "kafka-server-common",
    "kafka-storage",
    "kafka-tools",
)
_JUNIT: Final = "junit-platform-console-standalone"
TESTS: Final = JarSet(
    "kafkas-own-tests",
    (
        *TOOLS.jars,
        *(Jar(_KAFKA, name, classifier="test") for name in _TESTS_OF),
        Jar(_KAFKA, "kafka-test-common-runtime"),
        Jar(_KAFKA, "kafka-test-common-internal-api"),
        Jar("org.junit.platform", _JUNIT, "1.13.4"),
        Jar("org.mockito", "mockito-core", "5.20.0"),
        Jar("org.mockito", "mockito-junit-jupiter", "5.20.0"),
        Jar("org.bouncycastle", "bcpkix-jdk18on", "1.81"),
        Jar("org.hamcrest", "hamcrest", "3.0"),
    ),
)
"""Brokers, tools, tests, the kit that makes clusters, JUnit, and what the tests need."""
_IN_CONSOLE: Final = re.compile(r"(?:junit-(?:jupiter|platform)|opentest4j|apiguardian)-")
_TEST: Final = re.compile(r"(org/apache/kafka/[\w/]+Test)\.class")


def in_order(jars: Iterable[Path]) -> list[Path]:
    """Return the jars for a class path: JUnit is that of the console, in one version."""
    jars = list(jars)
    console = [jar for jar in jars if jar.name.startswith(_JUNIT)]
    return console + [jar for jar in jars if jar not in console and not _IN_CONSOLE.match(jar.name)]


def classes_of_clients(jars: Iterable[Path]) -> list[str]:
    """Return the test classes of kafka-clients-integration-tests, in order."""
    (jar,) = (jar for jar in jars if jar.name.startswith("kafka-clients-integration-tests-"))
    with zipfile.ZipFile(jar) as archive:
        found = (_TEST.fullmatch(name) for name in archive.namelist())
        return sorted(match[1].replace("/", ".") for match in found if match)
