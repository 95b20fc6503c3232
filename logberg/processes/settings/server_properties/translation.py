"""Turns the values of Kafka's keys into settings of a controller or of an agent.

Rule: each setting comes with the strongest source among the keys that it was made of, so that a
setting of the command line wins over one of a TOML file, and one of server.properties does not.
Paths become absolute; relative ones are relative to the file's folder. All problems are reported
together.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from logberg.processes.settings.server_properties import listeners as listening
from logberg.processes.settings.server_properties.addresses import (
    ServerAddress,
    numbered_urls,
    servers,
    voters,
)
from logberg.processes.settings.server_properties.key_groups import KeyGroup, rule_of
from logberg.processes.settings.server_properties.sources import CLUSTER_ID, KafkaValues
from logberg.processes.settings.server_properties.syntax import Given, Source, read_properties
from logberg.processes.settings.settings_files import SettingsError

HTTP_ABOVE: Final = 100
"""HTTP listeners are so far above the ports that Kafka's keys name."""
NEVER_MS: Final = 100 * 365 * 86_400_000
"""A hundred years: Kafka's 0 means that the time alone is no reason for a snapshot."""
CONTROLLER, BROKER = "controller", "broker"
AUTHORIZER: Final = "authorizer.class.name"
STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


class TranslatedSetting(NamedTuple):
    """One setting, or one key of a table of settings."""

    path: tuple[str, ...]
    value: Any
    source: Source


class _Scalar(NamedTuple):
    key: str
    setting: str
    convert: Callable[[str], Any]


def _number(text: str) -> int:
    return int(text.strip())


def _or_never(text: str) -> int:
    return _number(text) or NEVER_MS


def _flag(text: str) -> bool:
    if text.strip().lower() not in ("true", "false"):
        raise ValueError(text)
    return text.strip().lower() == "true"


def _seconds(text: str) -> int:
    return int(text.strip()) * 1000


def _principals(text: str) -> list[str]:
    return [part.strip() for part in text.split(";") if part.strip()]


_TIMES: Final = (
    _Scalar("broker.session.timeout.ms", "session_ms", _number),
    _Scalar("broker.heartbeat.interval.ms", "heartbeat_ms", _number),
)
_RIGHTS: Final = (
    _Scalar("super.users", "super_users", _principals),
    _Scalar("allow.everyone.if.no.acl.found", "allow_if_no_acl", _flag),
)
_SCALARS: Final = (
    *_TIMES,
    _Scalar("controller.quorum.fetch.timeout.ms", "election_timeout_ms", _number),
    _Scalar("num.partitions", "default_partitions", _number),
    _Scalar("default.replication.factor", "default_replication_factor", _number),
    _Scalar("delete.topic.enable", "topic_deletion", _flag),
    _Scalar("auto.leader.rebalance.enable", "auto_leader_rebalance", _flag),
    _Scalar("leader.imbalance.check.interval.seconds", "leader_imbalance_check_ms", _seconds),
    _Scalar("unclean.leader.election.interval.ms", "unclean_leader_election_ms", _number),
    _Scalar("metadata.log.segment.bytes", "segment_bytes", _number),
    _Scalar("metadata.log.max.record.bytes.between.snapshots", "checkpoint_bytes", _number),
    _Scalar("metadata.log.max.snapshot.interval.ms", "checkpoint_ms", _or_never),
    _Scalar("delegation.token.max.lifetime.ms", "token_max_lifetime_ms", _number),
    _Scalar("delegation.token.expiry.time.ms", "token_period_ms", _number),
    _Scalar("create.topic.policy.class.name", "create_topic_policy", str.strip),
    _Scalar("alter.config.policy.class.name", "alter_config_policy", str.strip),
    *_RIGHTS,
)
KAFKAS_DEFAULTS: Final[Mapping[str, Any]] = {
    "authorization": "off",
    "default_replication_factor": 1,
}
"""What a node that runs from server.properties has where nothing says otherwise, and where Kafka's
default is not ours. An agent has no such factor."""


class Translation:
    """The settings of one node."""

    def __init__(self, kafka: KafkaValues, folder: Path) -> None:
        self._values = kafka.values
        self._from_file = kafka.from_file
        self._folder = folder.resolve()
        self.found: list[TranslatedSetting] = []
        self.problems: list[str] = []

    def roles(self) -> frozenset[str]:
        """Return process.roles; empty if nothing says."""
        given = self._values.get("process.roles")
        if given is None:
            if self._from_file:
                self.problems.append(
                    "process.roles is missing; write controller, broker, or broker,controller."
                )
            return frozenset()
        found = [part.strip().lower() for part in given.value.split(",")]
        if not set(found) <= {CONTROLLER, BROKER} or len(set(found)) < len(found):
            self.problems.append(
                f"{given.place}: process.roles is {given.value!r}; write controller, broker, or "
                "broker,controller."
            )
        return frozenset(found)

    def controller(self, *, with_broker: bool) -> None:
        """Find the settings of a controller, and of the agent in its process."""
        for scalar in _SCALARS:
            self._scalar(scalar)
        self._configs()
        self._add(("authorization",), _authorization)
        self._add(("node_id",), self._node_id)
        self._add(("cluster_id",), self._cluster_id)
        self._add(("controllers",), self._peers)
        self._add(("data",), lambda read: self._data(read, CONTROLLER))
        self._add(("tls",), lambda read: listening.controller_tls(read, self._folder))
        if with_broker:
            self._agent(("broker",))

    def broker(self) -> None:
        """Find the settings of an agent in a process of its own."""
        for scalar in (*_TIMES, *_RIGHTS):
            self._scalar(scalar)
        self._add(("authorization",), _authorization)
        self._add(("broker_id",), self._node_id)
        self._add(("cluster_id",), self._cluster_id)
        self._add(("controllers",), self._controller_urls)
        self._agent(())

    def _agent(self, table: tuple[str, ...]) -> None:
        self._add((*table, "data"), lambda read: self._data(read, BROKER))
        self._add((*table, "http"), listening.agent_http)
        self._add((*table, "endpoints"), listening.endpoints)
        self._add((*table, "rack"), lambda read: _text(read("broker.rack")))
        self._add((*table, "tls"), lambda read: listening.broker_tls(read, self._folder))

    def _add(self, path: tuple[str, ...], make: Callable[[listening.Read], Any]) -> None:
        """Add a setting, unless `make` returns None: then nothing is said about it."""
        source = Source.FILE

        def read(key: str) -> Given | None:
            nonlocal source
            given = self._values.get(key)
            if given is not None:
                source = max(source, given.source)
            return given

        try:
            value = make(read)
        except SettingsError as error:
            if str(error) not in self.problems:
                self.problems.append(str(error))
            return
        if value is not None:
            self.found.append(TranslatedSetting(path, value, source))

    def _scalar(self, scalar: _Scalar) -> None:
        given = self._values.get(scalar.key)
        if given is None:
            return
        try:
            value = scalar.convert(given.value)
        except ValueError:
            self.problems.append(
                f"{given.place}: {scalar.key} is {given.value!r}; write true or false."
            )
            return
        self.found.append(TranslatedSetting((scalar.setting,), value, given.source))

    def _configs(self) -> None:
        for key, given in self._values.items():
            if rule_of(key).group is KeyGroup.CONFIG:
                path = ("configs", key)
                self.found.append(TranslatedSetting(path, given.value.strip(), given.source))

    def _node_id(self, read: listening.Read) -> int | None:
        new, old = read("node.id"), read("broker.id")
        if old is not None and _number(old.value) == -1:
            # Kafka's default: no number is given.
            old = None
        if new is not None and old is not None and _number(new.value) != _number(old.value):
            raise SettingsError(
                f"{old.place}: broker.id is {old.value}, and node.id is {new.value}; write node.id "
                "only."
            )
        given = new or old
        return None if given is None else _number(given.value)

    def _cluster_id(self, read: listening.Read) -> str | None:
        """Take it from the key, or from the file that `kafka-storage format` writes."""
        given = read(CLUSTER_ID)
        stated = None if given is None else given.value.strip()
        for directory in self._directories(read):
            path = directory / "meta.properties"
            if not path.exists():
                continue
            formatted = read_properties(path).values.get("cluster.id")
            if formatted is None:
                continue
            if stated is not None and formatted.value != stated:
                raise SettingsError(
                    f"{path} belongs to cluster {formatted.value}, but {CLUSTER_ID} says {stated}; "
                    "correct one of them."
                )
            stated = formatted.value
        return stated

    def _directories(self, read: listening.Read) -> list[Path]:
        """Return the folders that the file names, that of the controller first."""
        metadata = read("metadata.log.dir")
        logs = read("log.dirs") or read("log.dir")
        names = [] if metadata is None else [metadata.value.strip()]
        names += [] if logs is None else [part.strip() for part in logs.value.split(",")]
        return [self._folder / name for name in names if name]

    def _data(self, read: listening.Read, role: str) -> str | None:
        if role == BROKER:
            logs = read("log.dirs") or read("log.dir")
            names = [] if logs is None else [part.strip() for part in logs.value.split(",")]
            found = [self._folder / name for name in names if name]
        else:
            found = self._directories(read)
        if not found:
            if not self._from_file:
                return None
            keys = "log.dirs" if role == BROKER else "metadata.log.dir or log.dirs"
            raise SettingsError(
                f"{keys} is missing; name a folder. (Kafka's default is below /tmp, which is "
                "emptied when the machine starts.)"
            )
        return str(found[0] / f"logberg-{role}")

    def _voters(self, read: listening.Read) -> dict[int, ServerAddress]:
        given = read("controller.quorum.voters")
        if given is not None and given.value.strip():
            return voters("controller.quorum.voters", given)
        given = read("controller.quorum.bootstrap.servers")
        if given is None or not given.value.strip():
            return {}
        found = servers("controller.quorum.bootstrap.servers", given)
        node_id = self._node_id(read)
        if len(found) > 1 or node_id is None:
            raise SettingsError(
                f"{given.place}: controller.quorum.bootstrap.servers doesn't say which controller "
                "has which number; write controller.quorum.voters=1@host:port,2@host:port,…"
            )
        return {node_id: found[0]}

    def _peers(self, read: listening.Read) -> list[dict[str, Any]] | None:
        found = self._voters(read)
        if not found:
            if not self._from_file:
                return None
            raise SettingsError(
                "controller.quorum.voters is missing; write number@host:port of each controller."
            )
        node_id = self._node_id(read)
        if node_id in found:
            listening.check_own_listener(read, found[node_id])
        tls = listening.controller_protocol(read) == listening.TLS
        given = read("logberg.controllers.http")
        urls = {} if given is None else numbered_urls("logberg.controllers.http", given)
        return [
            {"node_id": n, "quorum": str(at), "http": urls.get(n) or _url(at, tls=tls)}
            for n, at in sorted(found.items())
        ]

    def _controller_urls(self, read: listening.Read) -> list[str] | None:
        given = read("logberg.controllers.http")
        if given is not None:
            return list(numbered_urls("logberg.controllers.http", given).values())
        tls = listening.controller_protocol(read) == listening.TLS
        for key, take in (
            ("controller.quorum.voters", lambda key, given: [*voters(key, given).values()]),
            ("controller.quorum.bootstrap.servers", servers),
        ):
            given = read(key)
            if given is not None and given.value.strip():
                return [_url(at, tls=tls) for at in take(key, given)]
        return None


def _authorization(read: listening.Read) -> str | None:
    """Return the setting that Kafka's authorizer is to us; None: the file names none."""
    given = read(AUTHORIZER)
    if given is None or not given.value.strip():
        return None
    if given.value.strip() != STANDARD_AUTHORIZER:
        raise SettingsError(
            f"{given.place}: {AUTHORIZER} is refused: Logberg runs no Java classes; its entries "
            f"are evaluated as by {STANDARD_AUTHORIZER}, which may be named."
        )
    return "on"


def _url(at: ServerAddress, *, tls: bool) -> str:
    above = ServerAddress(at.host, at.port + HTTP_ABOVE)
    return f"{'https' if tls else 'http'}://{above}"


def _text(given: Given | None) -> str | None:
    return None if given is None or not given.value.strip() else given.value.strip()
