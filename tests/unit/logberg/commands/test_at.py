"""`--at` reads a past state from a log, with the same commands as the present one."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from logberg.cli.command_tree import cli
from metadata.image import MetadataImage
from tests.unit.audit.nodes import write_node

COMMANDS = {
    "topics list": [],
    "partitions list": [],
    "brokers list": [],
    "configs list": [],
    "quotas list": [],
    "acls list": [],
    "acls check": ["User:a", "read", "topic:a"],
    "users scram list": [],
    "features list": [],
    "tokens list": [],
    "reassign list": [],
    "export": [],
}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[MetadataImage]]:
    folder = tmp_path_factory.mktemp("node")
    return folder, write_node(folder, batches=200)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_list_can_be_of_the_past(
    node: tuple[Path, list[MetadataImage]], command: str
) -> None:
    folder, images = node
    for image in images[10::60]:
        if image.transaction is not None:
            continue
        arguments = [*command.split(), *COMMANDS[command], "--at", str(image.offset)]
        done = CliRunner().invoke(cli, [*arguments, "--log", str(folder), "-o", "json"])
        assert done.exit_code == 0 or command == "acls check", done.output
        assert json.loads(done.stdout)["offset"] == image.offset


def test_topics_of_the_past_are_those_of_the_image(node: tuple[Path, list[MetadataImage]]) -> None:
    folder, images = node
    seen = set()
    for image in images[20::9]:
        if image.transaction is not None:
            continue
        arguments = ["topics", "list", "--at", str(image.offset), "--data", str(folder)]
        listed = json.loads(CliRunner().invoke(cli, [*arguments, "-o", "json"]).stdout)["topics"]
        names = [topic["name"] for topic in listed]
        assert names == sorted(topic.name for topic in image.topics.by_id.values())
        seen.add(tuple(names))
    assert len(seen) > 3


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--at", "999999"], 1, "is not there yet"),
        (["--at", "soon"], 1, "is not a moment"),
        (["--at", "1", "--log", "/nowhere"], 1, "is not there"),
        (["--log", "/nowhere"], 2, "--log is only for --at"),
    ],
)
def test_bad_moments_and_places(
    node: tuple[Path, list[MetadataImage]], arguments: list[str], code: int, says: str
) -> None:
    done = CliRunner().invoke(cli, ["topics", "list", "--data", str(node[0]), *arguments])
    assert done.exit_code == code
    assert says in done.output
