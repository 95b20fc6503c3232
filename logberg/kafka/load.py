"""A producer and a consumer of Kafka's own, as child processes, and what they report.

Rule: what counts as acknowledged or consumed is what Kafka's tools print themselves. The messages
are the numbers from 0 on. The producer waits for all replicas in sync (acks=all), and does not try
again, so a message that was refused is seen.
"""

import itertools
import re
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from logberg.kafka.tools import KafkaTools
from logberg.local.child import Child

_NUMBER: Final = re.compile(rb"^[0-9]+$", re.MULTILINE)


class _Event(msgspec.Struct):
    """One line of VerifiableProducer."""

    name: str
    timestamp: int = 0
    value: str | None = None
    message: str = ""


class Sent(NamedTuple):
    """What the producer has reported so far."""

    acknowledged: list[int]
    refused: list[str]
    """Why, for each message that was not acknowledged."""
    longest_gap_ms: int
    """The longest time between two acknowledgements."""


class Load:
    """Messages into a topic and out of it."""

    def __init__(
        self,
        folder: Path,
        tools: KafkaTools,
        bootstrap: str,
        topic: str,
        messages: int,
        per_second: int,
        settings: Path,
    ) -> None:
        """`folder` gets what the two print. `settings`: how they log in."""
        self.messages = messages
        server = ["--bootstrap-server", bootstrap, "--topic", topic]
        server += ["--command-config", str(settings)]
        produce = ["--max-messages", str(messages), "--throughput", str(per_second), "--acks", "-1"]
        consume = ["--from-beginning", "--max-messages", str(messages), "--timeout-ms", "60000"]

        def child(name: str, tool: str, arguments: list[str]) -> Child:
            # Both streams go to one file: a warning must not stand in the middle of a number.
            command = tools.command(tool, [*server, *arguments], "ERROR")
            return Child(name, [], folder / f"{name}.log", program=command)

        self.producer = child("producer", "kafka-verifiable-producer", produce)
        self.consumer = child("consumer", "kafka-console-consumer", consume)

    def start(self) -> None:
        """Start both. Call it from the main thread."""
        self.consumer.start()
        self.producer.start()

    def stop(self) -> None:
        """End what still runs."""
        self.producer.kill()
        self.consumer.kill()

    @property
    def over(self) -> bool:
        """Whether both have ended."""
        return not (self.producer.running or self.consumer.running)

    def sent(self) -> Sent:
        """Return what the producer has reported so far."""
        return read_producer(_read(self.producer.output))

    def consumed(self) -> list[int]:
        """Return the messages that the consumer has printed so far."""
        return [int(number) for number in _NUMBER.findall(_read(self.consumer.output))]


def read_producer(printed: bytes) -> Sent:
    """Read what VerifiableProducer printed; the last line may be unfinished."""
    acknowledged: list[int] = []
    refused: list[str] = []
    times: list[int] = []
    for line in printed.splitlines():
        try:
            event = msgspec.json.decode(line, type=_Event)
        except msgspec.DecodeError:
            continue
        if event.name == "producer_send_success" and event.value is not None:
            acknowledged.append(int(event.value))
            times.append(event.timestamp)
        elif event.name == "producer_send_error":
            refused.append(event.message)
    gaps = (later - earlier for earlier, later in itertools.pairwise(times))
    return Sent(acknowledged, refused, max(gaps, default=0))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
