"""Kafka's own command line tools, as they are started without Kafka's shell scripts.

Rule: a tool gets the caller's arguments as they are. Only the address of the cluster is added, and
the file of settings, if the caller names none, because that is what `kafka up` knows.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from audit.spark.java import Java
from logberg.kafka.jars import class_path
from logberg.kafka.kafka_error import KafkaError

_TOOLS: Final = "org.apache.kafka.tools."
CLASSES: Final = {
    "kafka-acls": f"{_TOOLS}AclCommand",
    "kafka-broker-api-versions": f"{_TOOLS}BrokerApiVersionsCommand",
    "kafka-client-metrics": f"{_TOOLS}ClientMetricsCommand",
    "kafka-cluster": f"{_TOOLS}ClusterTool",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-consumer": f"{_TOOLS}consumer.ConsoleConsumer",
    "kafka-console-producer": f"{_TOOLS}ConsoleProducer",
    "kafka-consumer-groups": f"{_TOOLS}consumer.group.ConsumerGroupCommand",
    "kafka-consumer-perf-test": f"{_TOOLS}ConsumerPerformance",
    "kafka-delegation-tokens": f"{_TOOLS}DelegationTokenCommand",
    "kafka-delete-records": f"{_TOOLS}DeleteRecordsCommand",
    "kafka-dump-log": f"{_TOOLS}DumpLogSegments",
    "kafka-features": f"{_TOOLS}FeatureCommand",
    "kafka-get-offsets": f"{_TOOLS}GetOffsetShell",
    "kafka-groups": f"{_TOOLS}GroupsCommand",
    "kafka-leader-election": f"{_TOOLS}LeaderElectionCommand",
    "kafka-log-dirs": f"{_TOOLS}LogDirsCommand",
    "kafka-metadata-quorum": f"{_TOOLS}MetadataQuorumCommand",
    "kafka-metadata-shell": "org.apache.kafka.shell.MetadataShell",
    "kafka-producer-perf-test": f"{_TOOLS}ProducerPerformance",
    "kafka-reassign-partitions": f"{_TOOLS}reassign.ReassignPartitionsCommand",
    "kafka-share-groups": f"{_TOOLS}consumer.group.ShareGroupCommand",
    "kafka-storage": "kafka.tools.StorageTool",
    "kafka-streams-groups": f"{_TOOLS}streams.StreamsGroupCommand",
    "kafka-topics": f"{_TOOLS}TopicCommand",
    "kafka-transactions": f"{_TOOLS}TransactionsCommand",
    "kafka-verifiable-consumer": f"{_TOOLS}VerifiableConsumer",
    "kafka-verifiable-producer": f"{_TOOLS}VerifiableProducer",
}
"""The class of each tool, by the name of Kafka's script."""
_OFFLINE: Final = frozenset({"kafka-dump-log", "kafka-metadata-shell", "kafka-storage"})
"""What reads files and asks nobody."""
_BEHIND_SUBCOMMAND: Final = frozenset({"kafka-cluster"})
"""Where the address belongs to the subcommand. Elsewhere it stands first."""
_ADDRESSES: Final = ("--bootstrap-server", "--bootstrap-controller")
_SETTINGS: Final = "--command-config"
_OLD_SETTINGS: Final = {
    "kafka-cluster": "--config",
    "kafka-console-consumer": "--consumer.config",
    "kafka-console-producer": "--producer.config",
    "kafka-consumer-perf-test": "--consumer.config",
    "kafka-producer-perf-test": "--producer.config",
    "kafka-verifiable-consumer": "--consumer.config",
    "kafka-verifiable-producer": "--producer.config",
}
"""The option of a file of settings before Kafka 4.2, where a tool has another one (KIP-1147)."""
_ONE_OPTION_SINCE: Final = (4, 2)
_HEAP: Final = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_LOG4J2: Final = """\
<?xml version="1.0" encoding="UTF-8"?>
<Configuration status="OFF">
  <Appenders>
    <Console name="err" target="SYSTEM_ERR">
      <PatternLayout pattern="[%d] %p %m (%c)%n"/>
    </Console>
  </Appenders>
  <Loggers>
    <Root level="LEVEL"><AppenderRef ref="err"/></Root>
  </Loggers>
</Configuration>
"""


def check_known(name: str) -> None:
    """Raise KafkaError for a tool that is not known."""
    if name not in CLASSES:
        raise KafkaError(f"{name!r} is none of Kafka's tools. These are: {', '.join(CLASSES)}.")


class KafkaTools(NamedTuple):
    """The tools of one version."""

    jars: Sequence[Path]
    java: Java
    folder: Path
    """Gets the settings of what the tools log."""

    def command(self, name: str, arguments: Sequence[str], level: str = "WARN") -> list[str]:
        """Return what to start. What the tool logs from `level` on goes to stderr.

        Raises KafkaError for a tool that is not known.
        """
        check_known(name)
        log4j = self.folder / f"tools-{level.lower()}.xml"
        log4j.write_text(_LOG4J2.replace("LEVEL", level))
        start = [str(self.java.program), *_HEAP, f"-Dlog4j2.configurationFile={log4j}"]
        return [*start, "-cp", class_path(list(self.jars)), CLASSES[name], *arguments]


def names_a_cluster(name: str, arguments: Sequence[str]) -> bool:
    """Return whether a tool asks nobody, or the caller said whom."""
    return name in _OFFLINE or any(
        argument.partition("=")[0] in _ADDRESSES for argument in arguments
    )


def config_option(name: str, version: str) -> str:
    """Return the option with which a tool of this version takes a file of settings."""
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())
    return _SETTINGS if numbers >= _ONE_OPTION_SINCE else _OLD_SETTINGS.get(name, _SETTINGS)


def names_settings(arguments: Sequence[str]) -> bool:
    """Return whether the caller names a file of settings."""
    options = {_SETTINGS, *_OLD_SETTINGS.values()}
    return any(argument.partition("=")[0] in options for argument in arguments)


def with_address(name: str, arguments: Sequence[str], address: Sequence[str]) -> list[str]:
    """Return the arguments with an address, at the place where the tool takes it."""
    at = 0
    if name in _BEHIND_SUBCOMMAND and arguments and not arguments[0].startswith("-"):
        at = 1
    return [*arguments[:at], *address, *arguments[at:]]
