"""Runs Load.java as a child process, and reads what became of each message and change."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from logberg.local.child import Child
from tests.kafka.jvm.programs import JavaPrograms

TOPIC: Final = "load"
PARTITIONS: Final = 6
DRAIN_S: Final = 240.0
"""The load ends by itself once all that was acknowledged is read, or after a minute; a producer may
wait two minutes for its last messages."""


class AckedMessage(NamedTuple):
    """A message that the brokers acknowledged. Times are in ms of the wall clock."""

    value: int
    due_ms: int
    acked_ms: int
    partition: int
    offset: int


class ConfigChange(NamedTuple):
    """A change of the topic's config that was acknowledged."""

    value: int
    began_ms: int
    ended_ms: int


@dataclass
class Told:
    """What the clients were told."""

    acked: list[AckedMessage] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    read: dict[tuple[int, int], int] = field(default_factory=dict)
    """By partition and offset: the value of the message that was read."""
    changes: list[ConfigChange] = field(default_factory=list)
    failed_changes: list[str] = field(default_factory=list)
    ended: bool = False


class LoadProcess:
    """The load."""

    def __init__(
        self,
        programs: JavaPrograms,
        bootstrap: str,
        folder: Path,
        *,
        seconds: float,
        per_s: int = 200,
        change_every_ms: int = 200,
    ) -> None:
        command = programs.line(
            "Load", bootstrap, TOPIC, str(int(seconds)), str(per_s), str(change_every_ms)
        )
        self.child = Child("load", command[1:], folder / "load.log", program=command[:1])

    def start(self) -> None:
        self.child.start()

    def told(self) -> Told:
        """Read what it has printed so far."""
        return parse(self.child.output.read_text(errors="replace").splitlines())


def parse(lines: Sequence[str]) -> Told:
    """Read the lines that Load.java describes; others are passed over."""
    told = Told()
    for kind, words in _parts(lines):
        match kind:
            case "a":
                told.acked.append(AckedMessage(*map(int, words)))
            case "c":
                value, partition, offset, _ = map(int, words)
                told.read[partition, offset] = value
            case "m":
                told.changes.append(ConfigChange(*map(int, words)))
            case "f":
                told.failed.append(" ".join(words))
            case "n":
                told.failed_changes.append(" ".join(words))
            case "e":
                told.ended = True
    return told


_WORDS: Final = {"a": 5, "c": 4, "m": 3, "f": 4, "n": 4, "e": 0}


def _parts(lines: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    for line in lines:
        kind, *words = line.split(" ")
        if _WORDS.get(kind) == len(words):
            yield kind, words
