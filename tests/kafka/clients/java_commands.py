"""What Kafka's own command line tools (the Java Admin client) are asked to do."""

from typing import Final

from tests.kafka.tools.commands import ToolCommand

_TOPIC, _CONFIG = "kafka-topics --topic orders", "kafka-configs --entity-type"


def _to(words: str, until: str = "", *, fails: bool = False) -> ToolCommand:
    return ToolCommand(words, fails=fails, until=until, tries=10 if until else 1)


JAVA_COMMANDS: Final = (
    _to("kafka-cluster cluster-id"),
    _to("kafka-cluster list-endpoints"),
    _to("kafka-metadata-quorum describe --status"),
    _to("kafka-metadata-quorum describe --replication"),
    _to(f"{_TOPIC} --create --partitions 2 --replication-factor 2 --config retention.ms=60000"),
    _to(f"{_TOPIC} --create --partitions 2 --replication-factor 2", fails=True),
    _to("kafka-topics --topic wide --create --replication-factor 9", fails=True),
    _to(f"{_TOPIC} --alter --partitions 3"),
    _to(f"{_TOPIC} --describe", until="PartitionCount: 3"),
    _to("kafka-topics --topic gone --create --partitions 1 --replication-factor 1"),
    _to("kafka-topics --topic gone --delete"),
    _to("kafka-topics --list", until="orders"),
    _to(f"{_CONFIG} topics --entity-name orders --alter --add-config cleanup.policy=compact"),
    _to(f"{_CONFIG} topics --entity-name orders --alter --add-config segment.ms=soon", fails=True),
    _to(f"{_CONFIG} topics --entity-name orders --alter --delete-config retention.ms"),
    _to(f"{_CONFIG} topics --entity-name orders --describe", until="cleanup.policy=compact"),
    _to(f"{_CONFIG} topics --entity-name orders --describe --all", until="unclean.leader"),
    _to(f"{_CONFIG} brokers --entity-default --alter --add-config log.cleaner.threads=2"),
    _to(f"{_CONFIG} brokers --entity-default --describe", until="log.cleaner.threads=2"),
    _to(f"{_CONFIG} brokers --entity-name 2 --alter --add-config log.cleaner.threads=3"),
    _to(f"{_CONFIG} brokers --entity-name 2 --describe", until="log.cleaner.threads=3"),
    _to(
        f"{_CONFIG} users --entity-name bob --alter "
        "--add-config SCRAM-SHA-256=[iterations=8192,password=secret]"
    ),
    _to(f"{_CONFIG} users --entity-name bob --alter --add-config producer_byte_rate=1024"),
    _to(f"{_CONFIG} users --entity-name bob --describe", until="producer_byte_rate"),
    _to(f"{_CONFIG} users --entity-name bob --alter --delete-config SCRAM-SHA-256"),
    _to(f"{_CONFIG} ips --entity-name 10.0.0.1 --alter --add-config connection_creation_rate=3"),
    _to(f"{_CONFIG} client-metrics --entity-name m1 --alter --add-config interval.ms=1000"),
    _to(
        f"{_CONFIG} groups --entity-name g1 --alter --add-config consumer.session.timeout.ms=50000"
    ),
    _to("kafka-acls --add --allow-principal User:bob --operation Read --topic orders"),
    _to("kafka-acls --list"),
    _to("kafka-acls --remove --force --allow-principal User:bob --operation Read --topic orders"),
    _to("kafka-reassign-partitions --execute --reassignment-json-file moves.json"),
    _to(
        "kafka-reassign-partitions --verify --reassignment-json-file moves.json",
        until="is completed",
    ),
    _to("kafka-reassign-partitions --list"),
    _to("kafka-leader-election --election-type preferred --topic orders --partition 0"),
    _to("kafka-leader-election --election-type unclean --topic missing --partition 0", fails=True),
    _to("kafka-features describe"),
    _to("kafka-features upgrade --feature eligible.leader.replicas.version=1"),
    _to("kafka-features downgrade --feature eligible.leader.replicas.version=0"),
    _to("kafka-features upgrade --feature no.such.feature=1", fails=True),
    _to("kafka-delegation-tokens --create --max-life-time-period -1 --renewer-principal User:bob"),
    _to("kafka-delegation-tokens --describe --owner-principal User:admin"),
    _to("kafka-cluster unregister --id 77", fails=True),
    _to("kafka-topics --topic orders --delete"),
)
