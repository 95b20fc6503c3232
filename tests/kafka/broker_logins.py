"""How a real broker logs in at our listener: settings of server.properties for each way.

Every broker has a credential of its own, because a credential says which broker speaks.
"""

import datetime as dt
from pathlib import Path

from logberg.local.local_ca import LocalCertificateAuthority
from tests.kafka.our_controllers import OurControllers

_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
"""What a listener for users takes."""


def by_certificate(cluster: OurControllers, node_id: int) -> dict[str, str]:
    """A certificate that names the broker."""
    authority = LocalCertificateAuthority(
        cluster.local.folder / "certs", cluster.local.cluster_id, dt.datetime.now(dt.UTC)
    )
    cert, key = authority.issue(
        f"kafka-{node_id}", f"broker://{cluster.local.cluster_id}/{node_id}"
    )
    store = cluster.folder / f"kafka-{node_id}.pem"
    store.write_bytes(key.read_bytes() + cert.read_bytes())
    return {
        **_trust(cluster, "SSL"),
        "listener.name.controller.ssl.keystore.type": "PEM",
        "listener.name.controller.ssl.keystore.location": str(store),
    }


def by_token(cluster: OurControllers, node_id: int) -> dict[str, str]:
    """PLAIN with a token of the broker's, over TLS."""
    token = cluster.local.token_file(f"Broker:{node_id}").read_text().strip()
    return {
        **_trust(cluster, "SASL_SSL"),
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.controller.plain.sasl.jaas.config": jaas(_PLAIN, str(node_id), token),
    }


def by_scram(
    cluster: OurControllers, user: str, password: str, mechanism: str = "SCRAM-SHA-512"
) -> dict[str, str]:
    """SCRAM with a credential of the log, over TLS."""
    key = f"listener.name.controller.{mechanism.lower()}.sasl.jaas.config"
    return {
        **_trust(cluster, "SASL_SSL"),
        "sasl.mechanism.controller.protocol": mechanism,
        key: jaas(_SCRAM, user, password),
    }


def client_by_scram(
    folder: Path,
    user: str,
    password: str,
    mechanism: str = "SCRAM-SHA-256",
    *,
    token: bool = False,
) -> Path:
    """Write the properties of a client of a broker's SASL_PLAINTEXT listener."""
    path = folder / f"{user.replace('/', '-')}.properties"
    path.write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\n"
        f"sasl.jaas.config={jaas(_SCRAM, user, password, token=token)}\n"
    )
    return path


def users_listener(plain: int, users: int, controller: str = "PLAINTEXT") -> dict[str, str]:
    """A broker with a plain listener on one port, and on another one that demands SCRAM."""
    both = f"PLAINTEXT://127.0.0.1:{plain},USERS://127.0.0.1:{users}"
    return {
        "listeners": both,
        "advertised.listeners": both,
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.security.protocol.map": (
            f"CONTROLLER:{controller},PLAINTEXT:PLAINTEXT,USERS:SASL_PLAINTEXT"
        ),
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        **{
            f"listener.name.users.{mechanism.lower()}.sasl.jaas.config": f"{_SCRAM} required;"
            for mechanism in MECHANISMS
        },
    }


def jaas(module: str, user: str, password: str, *, token: bool = False) -> str:
    """Return a line of Java's login configuration."""
    by_token_id = ' tokenauth="true"' if token else ""
    return f'{module} required username="{user}" password="{password}"{by_token_id};'


def _trust(cluster: OurControllers, protocol: str) -> dict[str, str]:
    return {
        "listener.security.protocol.map": f"CONTROLLER:{protocol},PLAINTEXT:PLAINTEXT",
        "listener.name.controller.ssl.truststore.type": "PEM",
        "listener.name.controller.ssl.truststore.location": str(cluster.local.file.ca),
    }
