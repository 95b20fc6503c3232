"""The files of one Kafka server: server.properties and log4j2's configuration.

Rule: a broker of ours differs from any other in nothing. Its file names the controllers as Kafka's
manual says, and holds no word about Logberg.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

CONTROLLER_LISTENER: Final = "CONTROLLER"
_PROTOCOLS: Final = f"{CONTROLLER_LISTENER}:PLAINTEXT,PLAINTEXT:PLAINTEXT"

_LOG4J2: Final = """\
<?xml version="1.0" encoding="UTF-8"?>
<Configuration status="WARN">
  <Appenders>
    <Console name="out"><PatternLayout pattern="[%d] %p %m (%c)%n"/></Console>
  </Appenders>
  <Loggers>
    <Root level="INFO"><AppenderRef ref="out"/></Root>
  </Loggers>
</Configuration>
"""


def broker_properties(
    node_id: int,
    port: int,
    folder: Path,
    controllers: Sequence[str],
    more: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the settings of a broker on loopback.

    `controllers` are the addresses, host:port, of the controllers' Kafka listeners. `more` adds
    keys and replaces values.
    """
    return {
        "process.roles": "broker",
        "node.id": str(node_id),
        "controller.quorum.bootstrap.servers": ",".join(controllers),
        "controller.listener.names": CONTROLLER_LISTENER,
        "listener.security.protocol.map": _PROTOCOLS,
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "log.dirs": str(folder / "data"),
        # Small and quick: many of these servers share one machine.
        "num.network.threads": "2",
        "num.io.threads": "4",
        "group.initial.rebalance.delay.ms": "0",
        "offsets.topic.num.partitions": "5",
        "transaction.state.log.num.partitions": "5",
        **(more or {}),
    }


def controller_properties(
    node_id: int,
    port: int,
    folder: Path,
    controllers: Sequence[str],
    more: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the settings of a stock KRaft controller on loopback, to compare with."""
    return {
        "process.roles": "controller",
        "node.id": str(node_id),
        "controller.quorum.bootstrap.servers": ",".join(controllers),
        "controller.listener.names": CONTROLLER_LISTENER,
        "listener.security.protocol.map": _PROTOCOLS,
        "listeners": f"{CONTROLLER_LISTENER}://127.0.0.1:{port}",
        "advertised.listeners": f"{CONTROLLER_LISTENER}://127.0.0.1:{port}",
        "log.dirs": str(folder / "data"),
        **(more or {}),
    }


def write_files(folder: Path, properties: Mapping[str, str]) -> tuple[Path, Path]:
    """Write server.properties and log4j2.xml into `folder`. Returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    server, log4j = folder / "server.properties", folder / "log4j2.xml"
    server.write_text("".join(f"{key}={_escaped(value)}\n" for key, value in properties.items()))
    log4j.write_text(_LOG4J2)
    return server, log4j


def _escaped(value: str) -> str:
    """Java's Properties read a backslash as an escape, and a line's end as the value's."""
    return value.replace("\\", "\\\\").replace("\n", "\\n")
