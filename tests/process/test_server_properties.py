"""A node of both roles with TLS, from Kafka's server.properties and a file of our own beside it."""

import datetime as dt
import json
import ssl
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from logberg.local.local_ca import LocalCertificateAuthority
from logberg.local.ports import free_port_base
from tests.process.running_cluster import PATIENCE_S

pytestmark = pytest.mark.process

CLUSTER = "AAAAAAAAAAAAAAAAAAAAAA"
KEYS = """
process.roles = broker,controller
node.id = 1
controller.quorum.voters = 1@127.0.0.1:{quorum}
controller.listener.names = CONTROLLER
listeners = CLIENTS://:{broker}, CONTROLLER://:{quorum}
advertised.listeners = CLIENTS://127.0.0.1:{broker}
listener.security.protocol.map = CONTROLLER:SSL,CLIENTS:SASL_SSL
inter.broker.listener.name = CLIENTS
ssl.truststore.type = PEM
ssl.truststore.location = ca.crt
ssl.keystore.type = PEM
listener.name.controller.ssl.keystore.location = controller.pem
listener.name.clients.ssl.keystore.location = broker.pem
log.dirs = data
"""


def test_certificates_of_kafkas_keys(tmp_path: Path) -> None:
    """Each role shows its own certificate; callers without one are refused, as node.toml says."""
    base = free_port_base()
    authority = LocalCertificateAuthority(tmp_path, CLUSTER, dt.datetime.now(dt.UTC))
    for role, scheme in (("controller", "quorum"), ("broker", "broker")):
        cert, key = authority.issue(role, f"{scheme}://{CLUSTER}/1")
        pem = tmp_path / f"{role}.pem"
        pem.touch(mode=0o600)
        pem.write_bytes(cert.read_bytes() + key.read_bytes())
    (tmp_path / "server.properties").write_text(KEYS.format(quorum=base + 91, broker=base + 1))
    (tmp_path / "node.toml").write_text(
        f'cluster_id = "{CLUSTER}"\nrequire_authentication = true\n'
    )
    files = [
        "--config",
        str(tmp_path / "server.properties"),
        "--config",
        str(tmp_path / "node.toml"),
    ]
    node = subprocess.Popen(
        [sys.executable, "-m", "logberg", "controller", *files],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        trust = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))

        def ask(port: int, path: str) -> str:
            url = f"https://127.0.0.1:{port}{path}"
            with urllib.request.urlopen(url, context=trust, timeout=5) as answer:
                return str(answer.read().decode())

        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                # The agent is online only if the controllers accept the broker's certificate.
                health = json.loads(ask(base + 101, "/health/ready"))
                break
            except OSError:
                assert node.poll() is None, node.stderr.read()
                assert time.monotonic() < until
                time.sleep(0.1)
        assert (health["brokerId"], health["state"]) == (1, "online")
        assert ask(base + 191, "/health/ready")
        with pytest.raises(OSError, match="401"):
            ask(base + 191, "/v1/brokers")
        node.terminate()
        said = node.communicate(timeout=PATIENCE_S)[1]
        assert node.returncode == 0, said
    finally:
        node.kill()
        node.communicate()
