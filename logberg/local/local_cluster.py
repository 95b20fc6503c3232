"""A cluster on this machine, for `up` and `demo`: folders, ports, certificates, processes.

Rule: a local cluster is no special mode. It uses production's configuration files, its processes
are `logberg controller --config` and `logberg broker --config`, and they check certificates and
tokens as everywhere.

    DIR/cluster.json          what runs; scripts read it. It is there once all are ready
    DIR/controller-1 …        a controller's folder (journal, log, checkpoints)
    DIR/broker-1 …            an agent's folder (image)
    DIR/config, DIR/certs     the cluster's identity and configuration files; certificates
    DIR/config/cluster.key    the key that seals the cluster's secrets, 0600
    DIR/admin.token           the administrator's token, 0600
    DIR/tokens                tokens of other principals, such as Broker-7.token, 0600
    DIR/output                what the processes wrote
"""

import datetime as dt
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from kafka_listener.serving.logins import MECHANISMS
from logberg.local.child import Child, stop_all
from logberg.local.cluster_file import (
    CLUSTER_FILE,
    CLUSTER_KEY_FILE,
    IDENTITY_FILE,
    TOKEN_FILE,
    ClusterFile,
    KafkaPart,
    LocalClusterError,
    LocalProcess,
)
from logberg.local.issued_tokens import ADMIN, issue, token_file
from logberg.local.kafka_part import (
    KafkaWanted,
    controller_settings,
    kafka_ports,
    new_part,
    resumed_part,
)
from logberg.local.local_ca import LocalCertificateAuthority
from logberg.local.ports import (
    AGENT_PORT,
    CLIENTS_PORT,
    DEFAULT_PORT_BASE,
    HTTP_PORT,
    QUORUM_PORT,
    port_is_free,
)
from logberg.local.toml_text import to_toml
from metadata.acl_rules import Enforcement
from metadata.sealing import KEY_BYTES
from metadata.uuids import new_cluster_id
from runtime.disk.secret_file import write_new_secret
from runtime.randomness import from_system

CONTROLLERS = (1, 3, 5)
"""Sensible sizes: an even number survives no more failures than one controller less."""


class Timing(msgspec.Struct, frozen=True):
    """Sessions and heartbeats, in ms."""

    session_ms: int = 9_000
    heartbeat_ms: int = 2_000


class LocalCluster:
    """The cluster in a folder."""

    def __init__(
        self,
        folder: Path,
        controllers: int | None = None,
        brokers: int | None = None,
        port_base: int | None = None,
        timing: Timing | None = None,
        tokens: Sequence[str] = (),
        features: Mapping[str, int] | None = None,
        kafka: KafkaWanted | None = None,
        *,
        kafka_clients: bool = False,
        authorization: str | None = None,
    ) -> None:
        """`tokens`: principals to issue a token for, such as Broker:7; see `token_file`.

        `features`: levels at which a new cluster begins, by feature. `kafka`: its brokers are
        Kafka's, which somebody else starts (logberg.kafka.local_kafka); `brokers` is 0 then.
        `kafka_clients`: let our own brokers listen for Kafka's clients, also after later starts.
        `authorization`: the controllers' setting, also after later starts; None: as it was, and
        "on" for a new cluster.
        """
        self._principals = tokens
        self._features = dict(features or {})
        self.folder = folder.resolve()
        self.timing = timing or Timing()
        # A folder of release 0.1 has no identity file: its cluster.json says the same.
        self._known = next(
            (
                path
                for path in (self.folder / IDENTITY_FILE, self.folder / CLUSTER_FILE)
                if path.exists()
            ),
            None,
        )
        self.resumed = self._known is not None
        self.file = (
            self._resume(self._known, controllers, brokers, port_base, kafka)
            if self._known is not None
            else self._new(
                controllers or 3,
                3 if brokers is None else brokers,
                port_base or DEFAULT_PORT_BASE,
                kafka,
            )
        )
        if kafka_clients:
            self.file = msgspec.structs.replace(self.file, kafka_clients=True)
        if authorization is not None:
            self.file = msgspec.structs.replace(self.file, authorization=authorization)
        self.controllers = {
            n: Child(
                f"controller-{n}",
                ["controller", "--config", str(self.folder / "config" / f"controller-{n}.toml")],
                self.folder / "output" / f"controller-{n}.log",
            )
            for n in range(1, self.file.controllers + 1)
        }
        self.brokers = {
            n: Child(
                f"broker-{n}",
                ["broker", "--config", str(self.folder / "config" / f"broker-{n}.toml")],
                self.folder / "output" / f"broker-{n}.log",
            )
            for n in range(1, self.file.brokers + 1)
        }

    @property
    def cluster_id(self) -> str:
        """The cluster's id."""
        return self.file.cluster_id

    def controller_url(self, n: int) -> str:
        """URL of a controller's HTTP listener."""
        return f"https://127.0.0.1:{self.file.port_base + HTTP_PORT + n - 1}"

    def agent_url(self, n: int) -> str:
        """URL of an agent's HTTP listener."""
        return f"https://127.0.0.1:{self.file.port_base + AGENT_PORT + n - 1}"

    def clients_address(self, n: int) -> str:
        """host:port of an agent's listener for Kafka's clients."""
        return f"127.0.0.1:{self.file.port_base + CLIENTS_PORT + n - 1}"

    @property
    def clients_addresses(self) -> list[str]:
        """The same of all agents; empty: they have none."""
        return [self.clients_address(n) for n in self.brokers] if self.file.kafka_clients else []

    def quorum_address(self, n: int) -> str:
        """host:port of a controller's quorum listener."""
        return f"127.0.0.1:{self.file.port_base + QUORUM_PORT + n - 1}"

    @property
    def controller_urls(self) -> list[str]:
        """URLs of all controllers."""
        return [self.controller_url(n) for n in self.controllers]

    @property
    def children(self) -> list[Child]:
        """All processes."""
        return [*self.controllers.values(), *self.brokers.values()]

    def begin_at(self, features: Mapping[str, int]) -> None:
        """Let a new cluster begin at these feature levels. Call it before `prepare`."""
        self._features = dict(features)

    def check(self) -> None:
        """Refuse a folder of others and ports that are taken. Raises LocalClusterError."""
        self._refuse_foreign_folders()
        self._refuse_taken_ports()

    def prepare(self) -> None:
        """Make folders, certificates, token and configuration files. Raises LocalClusterError.

        Removes cluster.json: scripts wait for that file, and it means that the cluster is ready.
        """
        self.check()
        for name in ("config", "output"):
            (self.folder / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        self._write(IDENTITY_FILE, msgspec.structs.replace(self.file, nodes=()))
        (self.folder / CLUSTER_FILE).unlink(missing_ok=True)
        tokens = issue(self.folder, self._principals)
        if not self._cluster_key.exists():
            write_new_secret(self._cluster_key, KEY_BYTES)
        authority = LocalCertificateAuthority(
            self.folder / "certs", self.cluster_id, dt.datetime.now(dt.UTC)
        )
        for n in self.controllers:
            pair = authority.issue(f"controller-{n}", f"quorum://{self.cluster_id}/{n}")
            self._write_config(f"controller-{n}", self._controller_config(n, pair, tokens))
        for n in self.brokers:
            pair = authority.issue(f"broker-{n}", f"broker://{self.cluster_id}/{n}")
            self._write_config(f"broker-{n}", self._broker_config(n, pair))

    def write_cluster_file(self, kafka: KafkaPart | None = None) -> None:
        """Write cluster.json with what runs now. Call it once all processes are ready.

        `kafka`: Kafka's brokers as they are now.
        """
        nodes = [
            LocalProcess(
                role,
                n,
                child.pid if child.running else None,
                self.controller_url(n) if role == "controller" else self.agent_url(n),
                self.quorum_address(n) if role == "controller" else None,
                str(self.folder / f"{role}-{n}"),
                self.clients_address(n) if role == "broker" and self.file.kafka_clients else None,
            )
            for role, children in (("controller", self.controllers), ("broker", self.brokers))
            for n, child in children.items()
        ]
        self.file = msgspec.structs.replace(
            self.file, nodes=tuple(nodes), kafka=kafka or self.file.kafka
        )
        self._write(Path(CLUSTER_FILE), self.file)

    def _write(self, name: Path, file: ClusterFile) -> None:
        """Replace a file atomically, so that no reader sees half of it."""
        text = msgspec.json.format(msgspec.json.encode(file), indent=2)
        path = self.folder / name
        beside = path.with_name(path.name + ".part")
        beside.write_bytes(text + b"\n")
        beside.rename(path)

    def check_alive(self) -> None:
        """Raise LocalClusterError with the last output of a process that ended unexpectedly."""
        for child in self.children:
            if child.exit_code is not None and child.exit_code not in (0, -signal.SIGKILL):
                raise LocalClusterError(child.obituary().rstrip())

    def stop(self, limit_s: float = 20.0) -> list[str]:
        """Stop the brokers, then the controllers, cleanly. Returns the names of the killed."""
        forced = stop_all(list(self.brokers.values()), limit_s)
        return forced + stop_all(list(self.controllers.values()), limit_s)

    def _new(
        self, controllers: int, brokers: int, port_base: int, kafka: KafkaWanted | None
    ) -> ClusterFile:
        if controllers not in CONTROLLERS:
            raise LocalClusterError(f"--controllers is {controllers}; use 1, 3 or 5.")
        return ClusterFile(
            cluster_id=new_cluster_id(lambda: from_system().getrandbits(122)),
            controllers=controllers,
            brokers=brokers,
            port_base=port_base,
            ca=str(self.folder / "certs" / "ca.crt"),
            token_file=str(self.folder / TOKEN_FILE),
            kafka=new_part(kafka),
            authorization=Enforcement.ON.value,
        )

    def _resume(
        self,
        path: Path,
        controllers: int | None,
        brokers: int | None,
        port_base: int | None,
        kafka: KafkaWanted | None,
    ) -> ClusterFile:
        try:
            file = msgspec.json.decode(path.read_bytes(), type=ClusterFile)
        except (msgspec.DecodeError, OSError) as error:
            raise LocalClusterError(
                f"{path} can't be read ({error}). Use another folder with --data, or remove it."
            ) from None
        if controllers is not None and controllers != file.controllers:
            raise LocalClusterError(
                f"{self.folder} holds a cluster of {file.controllers} controllers, not "
                f"{controllers}. Leave --controllers out, or use another folder with --data."
            )
        return msgspec.structs.replace(
            file,
            brokers=file.brokers if brokers is None else brokers,
            port_base=port_base or file.port_base,
            ca=str(self.folder / "certs" / "ca.crt"),
            token_file=str(self.folder / TOKEN_FILE),
            kafka=resumed_part(self.folder, file.kafka, kafka),
        )

    def _refuse_foreign_folders(self) -> None:
        if self.resumed:
            return
        found = sorted(
            path.name
            for path in self.folder.glob("*-*")
            if path.name.startswith(("controller-", "broker-", "kafka-"))
        )
        if found:
            raise LocalClusterError(
                f"{self.folder} holds {', '.join(found)} but no {IDENTITY_FILE}: they belong to "
                "another cluster. Use another folder with --data, or move them away."
            )

    def _refuse_taken_ports(self) -> None:
        ports = [self.file.port_base + QUORUM_PORT + n - 1 for n in self.controllers]
        ports += [self.file.port_base + HTTP_PORT + n - 1 for n in self.controllers]
        ports += [self.file.port_base + AGENT_PORT + n - 1 for n in self.brokers]
        if self.file.kafka_clients:
            ports += [self.file.port_base + CLIENTS_PORT + n - 1 for n in self.brokers]
        ports += kafka_ports(self.file)
        taken = [port for port in ports if not port_is_free(port)]
        if taken:
            raise LocalClusterError(
                f"Port {', '.join(map(str, taken))} is in use. Perhaps this cluster runs already. "
                "If not, choose other ports with --port-base."
            )

    def token_file(self, principal: str) -> Path:
        """Return the file of the token that was issued for a principal."""
        return token_file(self.folder, principal)

    @property
    def _cluster_key(self) -> Path:
        return self.folder / CLUSTER_KEY_FILE

    def _controller_config(
        self, n: int, pair: tuple[Path, Path], tokens: dict[str, str]
    ) -> dict[str, Any]:
        return {
            "cluster_id": self.cluster_id,
            "node_id": n,
            "data": str(self.folder / f"controller-{n}"),
            "cluster_key": str(self._cluster_key),
            "authorization": self.file.authorization,
            "super_users": [ADMIN],
            **({"initial_features": self._features} if self._features else {}),
            "session_ms": self.timing.session_ms,
            "heartbeat_ms": self.timing.heartbeat_ms,
            "require_authentication": True,
            "controllers": [
                {"node_id": m, "quorum": self.quorum_address(m), "http": self.controller_url(m)}
                for m in range(1, self.file.controllers + 1)
            ],
            "tls": {"cert": str(pair[0]), "key": str(pair[1]), "ca": self.file.ca},
            "join": {
                "ca_cert": self.file.ca,
                "ca_key": str(Path(self.file.ca).with_name("ca.key")),
            },
            "tokens": [
                {"principal": principal, "sha256": digest} for principal, digest in tokens.items()
            ],
            **({"delegations": self._delegations()} if self.file.kafka_clients else {}),
            **controller_settings(self.file, n),
        }

    def _delegations(self) -> list[dict[str, Any]]:
        """Let the brokers ask for users who logged in to them by password or certificate."""
        return [{"broker": n, "users": ["User:*"]} for n in self.brokers]

    def _broker_config(self, n: int, pair: tuple[Path, Path]) -> dict[str, Any]:
        port = self.file.port_base + AGENT_PORT + n - 1
        return {
            "cluster_id": self.cluster_id,
            "broker_id": n,
            "data": str(self.folder / f"broker-{n}"),
            "http": f"127.0.0.1:{port}",
            "session_ms": self.timing.session_ms,
            "heartbeat_ms": self.timing.heartbeat_ms,
            "controllers": [self.controller_url(m) for m in range(1, self.file.controllers + 1)],
            "endpoints": [{"name": "HTTP", "host": "127.0.0.1", "port": port}],
            "holds_no_data": True,
            "authorization": self.file.authorization,
            "super_users": [ADMIN],
            "tls": {"cert": str(pair[0]), "key": str(pair[1]), "ca": self.file.ca},
            **(self._kafka_config(n) if self.file.kafka_clients else {}),
        }

    def _kafka_config(self, n: int) -> dict[str, Any]:
        kafka = {"listen": self.clients_address(n), "sasl_mechanisms": list(MECHANISMS)}
        return {"cluster_key": str(self._cluster_key), "kafka": kafka}

    def _write_config(self, name: str, config: dict[str, Any]) -> None:
        path = self.folder / "config" / f"{name}.toml"
        path.touch(mode=0o600)
        path.write_text(to_toml(config))
