"""Files of properties for tests, and what a node reads from them."""

from collections.abc import Mapping
from pathlib import Path

from logberg.processes.settings.node_settings import (
    LoadedBroker,
    LoadedController,
    NodeOptions,
    load_broker,
    load_controller,
)

BASE = {
    "process.roles": "controller",
    "node.id": "2",
    "controller.quorum.voters": "1@10.0.0.1:9093,2@10.0.0.2:9093,3@10.0.0.3:9093",
    "controller.listener.names": "CONTROLLER",
    "listeners": "CONTROLLER://:9093",
    "metadata.log.dir": "meta",
    "logberg.cluster.id": "c",
}
BOTH = {
    **BASE,
    "process.roles": "broker,controller",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "advertised.listeners": "PLAINTEXT://b2.example.org:9092",
    "log.dirs": "a,b",
}
BROKER = {
    "process.roles": "broker",
    "node.id": "7",
    "controller.quorum.bootstrap.servers": "10.0.0.1:9093,10.0.0.2:9093",
    "controller.listener.names": "CONTROLLER",
    "listeners": "PLAINTEXT://b7:9092",
    "log.dirs": "logs",
    "logberg.cluster.id": "c",
}


def write(folder: Path, keys: Mapping[str, str | None]) -> Path:
    path = folder / "server.properties"
    path.write_text("".join(f"{k}={v}\n" for k, v in keys.items() if v is not None))
    return path


def controller(
    folder: Path,
    changes: Mapping[str, str | None],
    *,
    base: Mapping[str, str] = BASE,
    toml: str = "",
    environment: Mapping[str, str] | None = None,
    overrides: tuple[str, ...] = (),
    with_broker: bool = False,
) -> LoadedController:
    files = [write(folder, {**base, **changes})]
    if toml:
        files.append(folder / "node.toml")
        files[-1].write_text(toml)
    options = NodeOptions(tuple(files), overrides, with_broker=with_broker)
    return load_controller(options, environment or {})


def broker(
    folder: Path,
    changes: Mapping[str, str | None],
    environment: Mapping[str, str] | None = None,
) -> LoadedBroker:
    return load_broker(NodeOptions((write(folder, {**BROKER, **changes}),)), environment or {})
