"""Every tool that `logberg kafka tool` offers is in Kafka's jars of the default version."""

import zipfile

from logberg.kafka.jars import TOOLS, kafka_jars
from logberg.kafka.tools import CLASSES


def test_every_tool_is_in_the_jars() -> None:
    there = {
        name
        for jar in kafka_jars(wanted=TOOLS)
        for name in zipfile.ZipFile(jar).namelist()
        if name.endswith(".class")
    }
    wanted = {name: f"{kind.replace('.', '/')}.class" for name, kind in CLASSES.items()}
    assert {name: kind for name, kind in wanted.items() if kind not in there} == {}
