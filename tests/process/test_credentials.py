"""Credentials in the log, on real processes: what a revocation ends, how soon, and how nodes join.

Each connection below belongs to one credential and waits for its end in a thread of its own, so the
time is that of the client. `Measured` prints the times; run with -s to see them.
"""

import datetime as dt
import json
import socket
import threading
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from cryptography.x509 import load_pem_x509_certificate

from logberg.client.drawn_tokens import draw_access_token, hash_of
from logberg.local.child import Child
from logberg.local.local_ca import LocalCertificateAuthority
from logberg.local.ports import AGENT_PORT, CLIENTS_PORT
from logberg.local.toml_text import to_toml
from tests.kafka_wire import RawKafkaClient
from tests.process.running_cluster import RunningCluster, Said, logberg
from tests.unit.kafka_listener.serving.test_logins import ScramClient

pytestmark = [pytest.mark.process, pytest.mark.slow]
WITHIN_S = 5.0
STALE = "/v1/topics?consistency=stale"
"""Any controller answers it, by itself."""


class Held:
    """A connection that stays open, until the other side ends it."""

    def __init__(self, what: str, sock: socket.socket) -> None:
        self.what, self._socket = what, sock
        self.ended_at: float | None = None
        self._socket.settimeout(120)
        threading.Thread(target=self._wait, daemon=True).start()

    def _wait(self) -> None:
        with suppress(OSError):
            while self._socket.recv(65536):
                pass
        self._socket.close()
        self.ended_at = time.monotonic()


class Tried:
    """A cluster, and what is open on it."""

    def __init__(self, cluster: RunningCluster) -> None:
        self.cluster = cluster
        self.authority = LocalCertificateAuthority(
            cluster.folder / "certs", cluster.local.cluster_id, dt.datetime.now(dt.UTC)
        )

    def said(self, *arguments: str, code: int = 0) -> Said:
        found = logberg(*arguments, "--data", str(self.cluster.folder))
        assert found.code == code, found
        return found

    def change(self, path: str, body: Any) -> float:
        """Change something at the leader; return when the request was sent."""
        url, since = self.cluster.url(self.cluster.leader()), time.monotonic()
        answer = self.cluster.ask(url, "POST", path, body)
        assert answer.status == 200, answer
        return since

    def user(self, name: str) -> Path:
        """Return the certificate of a user."""
        uri = f"user://{self.cluster.local.cluster_id}/{name}"
        return self.authority.issue(f"user-{name}", uri)[0]

    def polls(self, who: str, token: str = "", cert: Path | None = None) -> list[Held]:
        """Begin a long poll at each controller."""
        return [self._poll(n, who, token, cert) for n in self.cluster.local.controllers]

    def _poll(self, n: int, who: str, token: str, cert: Path | None) -> Held:
        host, _, port = self.cluster.url(n).removeprefix("https://").partition(":")
        raw = socket.create_connection((host, int(port)), 20)
        sock = self.cluster.context(cert).wrap_socket(raw, server_hostname=host)
        shown = f"Authorization: Bearer {token}\r\n" if token else ""
        # No record is about this topic, so the request waits.
        path = "/v1/watch?resource=topic:nobody-makes-it&waitMs=100000"
        head = f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\n{shown}\r\n"
        sock.sendall(head.encode())
        return Held(f"{who}: long poll at controller {n}", sock)

    def at_agent(self, cert: Path | None = None) -> RawKafkaClient:
        """Connect to the agent's listener for Kafka's clients."""
        port = self.cluster.local.file.port_base + CLIENTS_PORT
        return RawKafkaClient(port, self.cluster.context(cert))

    def all_end(self, held: list[Held], since: float) -> dict[str, float]:
        """Wait until all of them have ended; return the times."""
        self.cluster.until(
            lambda: all(each.ended_at is not None for each in held),
            f"{[each.what for each in held if each.ended_at is None]} end",
            3 * WITHIN_S,
        )
        return {each.what: round((each.ended_at or 0.0) - since, 2) for each in held}


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tried]:
    cluster = RunningCluster(tmp_path_factory.mktemp("credentials") / "c", 3, 1, kafka=True)
    try:
        cluster.start()
        yield Tried(cluster)
    finally:
        cluster.kill()


def kept(client: RawKafkaClient, what: str) -> Held:
    return Held(what, client._socket)


def test_a_revocation_ends_open_connections_on_all_nodes(tried: Tried, tmp_path: Path) -> None:
    cluster = tried.cluster
    files = {name: tmp_path / name for name in ("alice", "carol")}
    for name, file in files.items():
        said = json.loads(
            tried.said("tokens", "create", f"User:{name}", str(file), "-o", "json").out
        )
        assert said["token"]["principal"] == f"User:{name}"
    alice, carol = (file.read_text().strip() for file in files.values())
    password = tmp_path / "password"
    password.write_text("secret\n")
    tried.said("users", "scram", "set", "dora", "--password-file", str(password))
    bob = tried.user("bob")
    assert cluster.ask(cluster.url(1), "GET", STALE, token=alice).status == 200

    def at_agent_by_token(name: str, token: str) -> Held:
        client = tried.at_agent()
        # The agent's image has the token a moment after the controllers.
        cluster.until(lambda: client.log_in(name, token) == 0, f"{name} logs in at the agent")
        return kept(client, f"{name}: Kafka by token at the agent")

    def at_agent_by_password() -> Held:
        logged_in: list[RawKafkaClient] = []

        def logs_in() -> bool:
            client = tried.at_agent()
            # A refused login has no challenge that could be read.
            with suppress(ValueError):
                if ScramClient(client, "SCRAM-SHA-512", "dora", "secret").log_in()[1]:
                    logged_in.append(client)
            return bool(logged_in)

        # The agent has the credential, and the key that opens it, a moment after the controllers.
        cluster.until(logs_in, "dora logs in at the agent")
        return kept(logged_in[0], "dora: Kafka by SCRAM at the agent")

    of_alice = [*tried.polls("alice", alice), at_agent_by_token("alice", alice)]
    of_carol = [*tried.polls("carol", carol), at_agent_by_token("carol", carol)]
    of_bob = [
        *tried.polls("bob", cert=bob),
        kept(tried.at_agent(bob), "bob: Kafka by certificate at the agent"),
    ]
    of_dora = [at_agent_by_password()]
    time.sleep(3.0)
    assert not any(each.ended_at for each in (*of_alice, *of_carol, *of_bob, *of_dora))
    measured: dict[str, float] = {}

    token_id = sha256(alice.encode()).hexdigest()[:16]
    since = tried.change(f"/v1/access-tokens/{token_id}/revoke", {})
    measured |= tried.all_end(of_alice, since)
    for n in cluster.local.controllers:
        refused = cluster.ask(cluster.url(n), "GET", STALE, token=alice)
        assert refused.status == 401
        assert f"access token {token_id} was revoked" in refused.body["message"]
    assert not any(each.ended_at for each in (*of_carol, *of_bob, *of_dora)), "others stay"

    serial = f"{load_pem_x509_certificate(bob.read_bytes()).serial_number:X}"
    since = tried.change("/v1/revocations", {"serial": serial})
    measured |= tried.all_end(of_bob, since)
    for n in cluster.local.controllers:
        refused = cluster.ask(cluster.url(n), "GET", STALE, cert=bob)
        assert refused.status == 401
        assert "was revoked" in refused.body["message"]

    gone = {"name": "dora", "mechanism": "SCRAM-SHA-512"}
    since = tried.change("/v1/users/scram", {"deletions": [gone]})
    measured |= tried.all_end(of_dora, since)

    # A token that expires ends what it let in, too: the old one of a rotation.
    carols = sha256(carol.encode()).hexdigest()[:16]
    new = draw_access_token()
    replacing = {"sha256": b64encode(hash_of(new)).decode(), "overlapMs": 0}
    since = tried.change(f"/v1/access-tokens/{carols}/rotate", replacing)
    measured |= tried.all_end(of_carol, since)
    assert cluster.ask(cluster.url(1), "GET", STALE, token=new).status == 200

    print(json.dumps(measured, indent=1))
    assert max(measured.values()) < WITHIN_S, measured
    secrets = (alice, carol, new)
    for path in cluster.folder.rglob("*"):
        if path.is_file() and path.suffix not in (".token", ".key"):
            content = path.read_bytes()
            assert not any(secret.encode() in content for secret in secrets), path


def test_a_node_joins_once_with_a_token(tried: Tried, tmp_path: Path) -> None:
    cluster, urls = tried.cluster, ",".join(tried.cluster.url(n) for n in (1, 2, 3))
    file, node = tmp_path / "b7.join", tmp_path / "node"
    tried.said("join-token", "create", str(file), "--role", "broker", "--id", "7", "--ttl", "10m")
    assert file.stat().st_mode & 0o077 == 0
    joining = ("join", str(file), "--controllers", urls)

    # Somebody who answers in the controllers' place has another authority.
    wrong = tmp_path / "wrong.join"
    wrong.write_text(file.read_text().strip()[:-64] + "0" * 64 + "\n")
    refused = logberg("join", str(wrong), "--controllers", urls, "--folder", str(tmp_path / "w"))
    assert refused.code == 1
    assert "another fingerprint" in refused.err
    cut = tmp_path / "cut.join"
    cut.write_text(file.read_text().strip()[:-1] + "\n")
    refused = logberg("join", str(cut), "--controllers", urls, "--folder", str(tmp_path / "w"))
    assert "no join token, or a part of one" in refused.err

    said = logberg(*joining, "--folder", str(node), "--output", "json")
    assert said.code == 0, said
    joined = json.loads(said.out)
    assert joined["principal"] == "Broker:7"
    assert (node / "node.key").stat().st_mode & 0o077 == 0

    again = logberg(*joining, "--folder", str(tmp_path / "thief"))
    assert again.code == 1
    assert "was used already, by another key" in again.err
    # The node itself repeats it, as if the answer had got lost.
    certificate = (node / "node.crt").read_bytes()
    (node / "node.crt").unlink()
    assert logberg(*joining, "--folder", str(node)).code == 0
    assert (node / "node.crt").read_bytes() == certificate
    # The token opens nothing else.
    secret = file.read_text().partition(".")[0]
    for path in ("/v1/topics", "/v1/status", "/v1/changes"):
        assert cluster.ask(cluster.url(1), "GET", path, token=secret).status == 401

    port = cluster.local.file.port_base + AGENT_PORT + 6
    config: dict[str, Any] = {
        "cluster_id": cluster.local.cluster_id,
        "broker_id": 7,
        "data": str(tmp_path / "broker-7"),
        "http": f"127.0.0.1:{port}",
        "session_ms": 3_000,
        "heartbeat_ms": 500,
        "controllers": [cluster.url(n) for n in (1, 2, 3)],
        "endpoints": [{"name": "HTTP", "host": "127.0.0.1", "port": port}],
        "holds_no_data": True,
        "authorization": "on",
        "tls": {name: joined[name] for name in ("cert", "key", "ca")},
    }
    settings = tmp_path / "broker-7.toml"
    settings.write_text(to_toml(config))
    broker = Child("broker-7", ["broker", "--config", str(settings)], tmp_path / "broker-7.log")
    try:
        broker.start()
        cluster.until(lambda: cluster.broker_states().get(7) == "online", "broker 7 is online")
        since = time.monotonic()
        tried.said("certs", "revoke", "--principal", "Broker:7")
        cluster.until(lambda: cluster.broker_states().get(7) != "online", "broker 7 is out")
        print(f"broker 7 out after {time.monotonic() - since:.1f} s, session 3 s")
        assert broker.running, "it tries again, and is refused"
    finally:
        broker.kill()

    # A new certificate of the same broker is taken.
    fresh = tmp_path / "fresh.join"
    tried.said("join-token", "create", str(fresh), "--role", "broker", "--id", "7")
    time.sleep(1.5)
    urls_of = ("join", str(fresh), "--controllers", urls, "--folder", str(tmp_path / "node2"))
    assert logberg(*urls_of).code == 0
    cert = tmp_path / "node2" / "node.crt"
    assert cluster.ask(cluster.url(1), "GET", STALE, cert=cert).status == 200


def test_a_controller_s_revoked_certificate_ends_its_links(tried: Tried) -> None:
    cluster = tried.cluster
    leader = cluster.leader()
    gone = next(n for n in cluster.local.controllers if n != leader)
    certificate = cluster.folder / "certs" / f"controller-{gone}.crt"
    serial = f"{load_pem_x509_certificate(certificate.read_bytes()).serial_number:X}"
    since = tried.change("/v1/revocations", {"serial": serial})

    def links_ended() -> bool:
        lines = cluster.output(f"controller-{leader}").splitlines()
        downs = [line for line in lines if '"link_down"' in line and f'"peer": {gone}' in line]
        return any("was revoked" in line for line in downs)

    cluster.until(links_ended, "the leader ends its link", 3 * WITHIN_S)
    took = time.monotonic() - since
    print(f"link of controller {gone} ended after {took:.1f} s")
    assert took < WITHIN_S
    cluster.create("after-the-revocation")
    time.sleep(2.0)
    ends = {n: (cluster.status(n) or {}).get("logEnd", 0) for n in cluster.local.controllers}
    assert ends[gone] < ends[leader], "it gets nothing any more"
    tried.said("certs", "reinstate", "--file", str(certificate))
    cluster.until(cluster.caught_up, "it is let in again, and catches up")
