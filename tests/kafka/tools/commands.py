"""The commands that are run, in order: each sees what those before it did.

Rule: a command goes to the broker (`server`) or straight to the controllers (`controller`), which
Kafka's tools allow for some of their subcommands only. `fails` marks those that are meant to be
refused, so that the page shows the sentence of the refusal, too.
"""

from typing import Final, NamedTuple

MOVES: Final = '{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[1]}]}'
"""The content of moves.json."""


class ToolCommand(NamedTuple):
    """One command."""

    words: str
    """The tool and its arguments, without the address."""
    controller: bool = False
    """It goes to the controllers."""
    fails: bool = False
    tries: int = 1
    """How often it may be repeated until it prints `until`."""
    until: str = ""
    """What it prints once the brokers have done what was asked."""


def _server(words: str, until: str = "", *, fails: bool = False) -> ToolCommand:
    return ToolCommand(words, fails=fails, until=until, tries=10 if until else 1)


def _controller(words: str, *, fails: bool = False) -> ToolCommand:
    return ToolCommand(words, controller=True, fails=fails)


_TOPIC, _CONFIG = "kafka-topics --topic orders", "kafka-configs --entity-type"
COMMANDS: Final = (
    _server("kafka-cluster cluster-id"),
    _controller("kafka-cluster list-endpoints"),
    _controller("kafka-metadata-quorum describe --status"),
    _server("kafka-metadata-quorum describe --replication"),
    _server(f"{_TOPIC} --create --partitions 2 --replication-factor 2 --config retention.ms=60000"),
    _server(f"{_TOPIC} --create --partitions 2 --replication-factor 2", fails=True),
    _server("kafka-topics --topic wide --create --replication-factor 9", fails=True),
    _server(f"{_TOPIC} --alter --partitions 3"),
    _server(f"{_TOPIC} --describe", until="PartitionCount: 3"),
    _server("kafka-topics --topic gone --create --partitions 1 --replication-factor 1"),
    _server("kafka-topics --topic gone --delete"),
    _server("kafka-topics --list", until="orders"),
    _controller(
        f"{_CONFIG} topics --entity-name orders --alter --add-config cleanup.policy=compact"
    ),
    _server(
        f"{_CONFIG} topics --entity-name orders --alter --add-config segment.ms=soon", fails=True
    ),
    _server(f"{_CONFIG} topics --entity-name orders --alter --delete-config retention.ms"),
    _server(f"{_CONFIG} topics --entity-name orders --describe", until="cleanup.policy=compact"),
    _controller(f"{_CONFIG} brokers --entity-default --alter --add-config log.cleaner.threads=2"),
    _server(f"{_CONFIG} brokers --entity-default --describe", until="log.cleaner.threads=2"),
    _server(
        f"{_CONFIG} users --entity-name bob --alter "
        "--add-config SCRAM-SHA-256=[iterations=8192,password=secret]"
    ),
    _server(f"{_CONFIG} users --entity-name bob --alter --add-config producer_byte_rate=1024"),
    _server(f"{_CONFIG} users --entity-name bob --describe", until="producer_byte_rate"),
    _server(f"{_CONFIG} users --entity-name bob --alter --delete-config SCRAM-SHA-256"),
    _server(
        f"{_CONFIG} ips --entity-name 10.0.0.1 --alter --add-config connection_creation_rate=3"
    ),
    _server(f"{_CONFIG} client-metrics --entity-name m1 --alter --add-config interval.ms=1000"),
    _server(
        f"{_CONFIG} groups --entity-name g1 --alter --add-config consumer.session.timeout.ms=50000"
    ),
    _controller("kafka-acls --add --allow-principal User:bob --operation Read --topic orders"),
    _controller("kafka-acls --list"),
    _controller(
        "kafka-acls --remove --force --allow-principal User:bob --operation Read --topic orders"
    ),
    _server("kafka-reassign-partitions --execute --reassignment-json-file moves.json"),
    _server(
        "kafka-reassign-partitions --verify --reassignment-json-file moves.json",
        until="is completed",
    ),
    _controller("kafka-reassign-partitions --list"),
    _server("kafka-leader-election --election-type preferred --topic orders --partition 0"),
    _server(
        "kafka-leader-election --election-type unclean --topic missing --partition 0", fails=True
    ),
    _server("kafka-features describe"),
    _controller("kafka-features describe"),
    _controller("kafka-features upgrade --feature eligible.leader.replicas.version=1"),
    _controller("kafka-features downgrade --feature eligible.leader.replicas.version=0"),
    _controller("kafka-features upgrade --feature no.such.feature=1", fails=True),
    _server("kafka-cluster unregister --id 77", fails=True),
)
