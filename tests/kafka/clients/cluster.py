"""The cluster that the clients ask: three controllers and three agents, as `logberg up --kafka`."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.process.running_cluster import RunningCluster

PROPERTIES: Final = "client.properties"
_MODULES: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


@contextmanager
def client_cluster(folder: Path) -> Iterator[RunningCluster]:
    """Run the cluster, and stop it in order."""
    cluster = RunningCluster(folder / "cluster", 3, 3, session_ms=9_000, kafka=True)
    try:
        cluster.start()
        yield cluster
        cluster.stop()
    finally:
        cluster.kill()


def access(
    cluster: RunningCluster, mechanism: str = "PLAIN", user: str = "admin", password: str = ""
) -> dict[str, str]:
    """Return what a client needs to ask the agents; by default with the administrator's token."""
    return {
        "SERVERS": ",".join(cluster.local.clients_addresses),
        "CA": cluster.local.file.ca,
        "MECHANISM": mechanism,
        "USER": user,
        "PASSWORD": password or cluster.token,
    }


def write_properties(folder: Path, names: Mapping[str, str]) -> Path:
    """Write the file that Kafka's tools take with --command-config."""
    module = _MODULES[names["MECHANISM"]]
    login = f'username="{names["USER"]}" password="{names["PASSWORD"]}"'
    lines = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": names["MECHANISM"],
        "sasl.jaas.config": f"{module} required {login};",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": names["CA"],
    }
    path = folder / PROPERTIES
    path.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
    return path
