"""Bad requests of clients, brokers and others to a real cluster, which goes on.

Each test asserts the answer. The last one asserts that none of the requests changed anything.
"""

import datetime as dt
import gzip
import resource
import signal
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from logberg.local.local_ca import LocalCertificateAuthority
from quorum.membership.greeting import WIRE_FORMAT, Greeting
from quorum.wire.codec import dumps
from runtime.links.frames import MAGIC, Hello, framed, framed_hello, header
from tests.process.running_cluster import Answer, RunningCluster, logberg, running

pytestmark = pytest.mark.process

INCARNATION = "MDAwMDAwMDAwMDAwMDAwMQ"
FETCH = "/v1/metadata/fetch"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    with running(
        tmp_path_factory.mktemp("bad-requests"), brokers=1, principals=("Broker:1", "Broker:7")
    ) as cluster:
        cluster.create("before")
        yield cluster


@pytest.fixture(autouse=True)
def the_cluster_goes_on(cluster: RunningCluster, request: pytest.FixtureRequest) -> Iterator[None]:
    """Whatever was sent: the same processes go on, and the next change is made."""
    pids = [child.pid for child in cluster.local.children]
    yield
    if "nothing" in request.node.name:
        return
    assert [child.pid for child in cluster.local.children if child.running] == pids
    cluster.create(f"after-{len(cluster.acknowledged)}")
    assert cluster.broker_states() == {1: "online"}


def post(cluster: RunningCluster, body: Any, path: str = "/v1/topics", **how: Any) -> Answer:
    if path == FETCH and "cert" not in how and isinstance(body, dict):
        how.setdefault("token", cluster.token_of(f"Broker:{body['brokerId']}"))
    return cluster.ask(cluster.url(cluster.leader()), "POST", path, body, **how)


def fetch(cluster: RunningCluster, broker_id: int = 7, **fields: Any) -> dict[str, Any]:
    return {
        "clusterId": cluster.local.cluster_id,
        "brokerId": broker_id,
        "incarnationId": INCARNATION,
        **fields,
    }


REGISTRATION = {"endpoints": [{"name": "HTTP", "host": "127.0.0.1", "port": 19999}]}


# -- shapes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"topics": [{"name": "x", "colour": "red"}]}, "colour"),
        ({"topics": [{"name": "x"}], "dryrun": True}, "dryrun"),
        ({"topics": [{"name": "x", "numPartitions": "three"}]}, "numPartitions"),
        ({"topics": [{"name": 7}]}, "name"),
        ({"topics": [{"name": "x", "numPartitions": 2**40}]}, "numPartitions"),
        ({"topics": []}, "topics"),
        ([], "object"),
        (b'{"topics": [{"name": "x"', ""),
        (b"\xff\xfe\x00", ""),
        (b"", ""),
    ],
)
def test_a_body_that_is_not_understood_is_refused_and_the_field_named(
    cluster: RunningCluster, body: Any, says: str
) -> None:
    answer = post(cluster, body)
    assert answer.status == 400, answer
    assert answer.body["code"] in {"INVALID_REQUEST", "MALFORMED_BODY"}
    assert says in answer.body["message"]
    assert answer.body["whoseFault"] == "client"
    assert not answer.body["retriable"]


def test_an_id_with_a_newline_behind_it_is_refused(cluster: RunningCluster) -> None:
    leader = cluster.url(cluster.leader())
    for body in ({"topicIds": ["A" * 22 + "\n"]}, {"topicIds": ["A" * 22 + "\n"], "dryRun": True}):
        answer = cluster.ask(leader, "DELETE", "/v1/topics", body)
        assert answer.status == 400, answer
        assert "topicIds" in answer.body["message"]
    for fields in (
        {"incarnationId": INCARNATION + "\n", "registration": REGISTRATION},
        {"registration": {**REGISTRATION, "logDirs": [INCARNATION + "\n"]}},
    ):
        assert post(cluster, fetch(cluster, **fields), FETCH).status == 400


def test_an_unknown_field_of_a_metadata_fetch_is_refused(cluster: RunningCluster) -> None:
    answer = post(cluster, fetch(cluster, wanted="online"), FETCH)
    assert answer.status == 400
    assert "wanted" in answer.body["message"]


def test_an_oversized_body_is_refused_before_it_is_read(cluster: RunningCluster) -> None:
    answer = post(cluster, b" " * (5 * 1024 * 1024))
    assert answer.status == 413
    assert answer.body["code"] == "BODY_TOO_LARGE"
    assert "smaller" in answer.body["message"] or "most" in answer.body["message"]


def raw(cluster: RunningCluster, port: int) -> ssl.SSLSocket:
    sock = socket.create_connection(("127.0.0.1", port), timeout=30)
    return cluster.context().wrap_socket(sock, server_hostname="127.0.0.1")


def test_half_a_body_half_a_head_and_silence_are_given_up(cluster: RunningCluster) -> None:
    port = int(cluster.url(cluster.leader()).rpartition(":")[2])
    with raw(cluster, port) as body, raw(cluster, port) as head, raw(cluster, port) as silent:
        body.sendall(
            b"POST /v1/topics HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
            b"authorization: Bearer " + cluster.token.encode() + b"\r\n"
            b'content-length: 100\r\n\r\n{"topics": [{"na'
        )
        head.sendall(b"GET /v1/status HTTP/1.1\r\nhost: 127")
        read_to_the_end(silent)
        read_to_the_end(head)
        answer = read_to_the_end(body)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"BODY_TIMED_OUT" in answer


def test_a_refused_request_behind_an_upgrade_ends_its_connection_only(
    cluster: RunningCluster,
) -> None:
    """So many come before it that the server reads it in a turn of its own, not as it arrives."""
    port = int(cluster.url(cluster.leader()).rpartition(":")[2])
    host = b"host: 127.0.0.1\r\n"
    before = (b"GET /v1/health HTTP/1.1\r\n" + host + b"\r\n") * 400
    upgrade = b"GET /v1/health HTTP/1.1\r\n" + host + b"connection: Upgrade\r\nupgrade: h2c\r\n\r\n"
    refused = b"GET /v1/health HTTP/1.1\r\n" + host + host + b"\r\n"
    with raw(cluster, port) as sock:
        sock.sendall(before + upgrade + refused)
        answer = read_to_the_end(sock)
    assert answer.count(b"HTTP/1.1 ") == 402
    assert b"two headers host" in answer.rpartition(b"HTTP/1.1 400 ")[2]


def read_to_the_end(sock: socket.socket) -> bytes:
    """What the other side says before it hangs up."""
    said = b""
    with suppress(OSError):
        while piece := sock.recv(65536):
            said += piece
    return said


HOSTILE = {
    "nested arrays": (b"\x91" * 50_000 + b"\xc0", "application/msgpack"),
    "nested objects": (b'{"topics":' * 5_000, "application/json"),
    "more objects than are decoded": (b'{"topics":' * 100_000, "application/json"),
    "a claim of 4 GiB": (b"\xdd\xff\xff\xff\xff", "application/msgpack"),
    "an extension type": (b"\x81\xa6topics\xd6\xff\x00\x00\x00\x00", "application/msgpack"),
    "no UTF-8": (b'{"topics": [{"name": "\xc3\x28"}]}', "application/json"),
    "not a number": (b'{"topics": [{"name": "x", "numPartitions": NaN}]}', "application/json"),
}


@pytest.mark.parametrize("what", list(HOSTILE))
def test_a_hostile_body_is_refused_at_once(cluster: RunningCluster, what: str) -> None:
    body, content_type = HOSTILE[what]
    answer = post(cluster, body, headers={"content-type": content_type})
    refused = (answer.status, answer.body["code"])
    if what == "more objects than are decoded":
        assert refused == (413, "BODY_TOO_LARGE"), answer
    else:
        assert refused in {(400, "INVALID_REQUEST"), (400, "MALFORMED_BODY")}, answer


def test_a_body_in_another_form_is_refused(cluster: RunningCluster) -> None:
    packed = gzip.compress(bytes(50_000_000))
    for headers in ({"content-encoding": "gzip"}, {"content-type": "text/xml"}):
        answer = post(cluster, packed, headers=headers)
        assert answer.status == 415, answer
        assert answer.body["code"] == "UNSUPPORTED_MEDIA_TYPE"


def test_three_hundred_silent_connections_do_not_keep_anybody_out(cluster: RunningCluster) -> None:
    port = int(cluster.url(cluster.leader()).rpartition(":")[2])
    with ExitStack() as stack:
        for _ in range(300):
            stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))
        for number in range(5):
            cluster.create(f"beside-the-silent-{number}")
        assert cluster.broker_states() == {1: "online"}


def test_when_file_handles_run_out_the_node_goes_on_and_serves_again(
    cluster: RunningCluster,
) -> None:
    leader = cluster.leader()
    child = cluster.controller(leader)
    before = resource.prlimit(child.pid, resource.RLIMIT_NOFILE)
    used = max(int(path.name) for path in Path(f"/proc/{child.pid}/fd").iterdir())
    resource.prlimit(child.pid, resource.RLIMIT_NOFILE, (used + 4, before[1]))
    try:
        with ExitStack() as stack:
            port = int(cluster.url(leader).rpartition(":")[2])
            for _ in range(40):
                stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))
            cluster.until(lambda: "accept_failed" in cluster.output(child.name), "it says so")
            # Links and brokers that are connected stay so: it still leads.
            standby = next(n for n in cluster.local.controllers if n != leader)
            assert (cluster.status(standby) or {})["leaderId"] == leader
        cluster.create("when-strangers-have-gone")
    finally:
        resource.prlimit(child.pid, resource.RLIMIT_NOFILE, before)


# -- who asks ------------------------------------------------------------------------------------


def test_no_token_and_an_unknown_token_are_refused(cluster: RunningCluster) -> None:
    for token, says in ((None, "token"), ("qk_wrong", "--token-file")):
        answer = post(cluster, {"topics": [{"name": "mine"}]}, token=token)
        assert answer.status == 401, answer
        assert answer.body["code"] == "UNAUTHENTICATED"
        assert says in answer.body["message"]
        assert answer.headers["www-authenticate"] == "Bearer"
    assert cluster.ask(cluster.url(1), "GET", "/health/live", token=None).status == 200


def test_refused_attempts_are_told_in_few_lines_and_counted(cluster: RunningCluster) -> None:
    leader = cluster.leader()
    output, before = cluster.output(f"controller-{leader}"), refused(cluster, leader)
    for number in range(120):
        answer = post(cluster, {"topics": [{"name": "x"}]}, token=f"guess-{number}")
        assert answer.status == 401
    assert refused(cluster, leader) == before + 120
    lines = cluster.output(f"controller-{leader}")[len(output) :].splitlines()
    told = [line for line in lines if "request_refused" in line]
    assert 1 <= len(told) <= 40
    assert "127.0.0.1" in told[0]
    assert "POST /v1/topics" in told[0]
    assert not [line for line in lines if "guess-" in line]


def refused(cluster: RunningCluster, n: int) -> int:
    text = cluster.ask(cluster.url(n), "GET", "/metrics").body.decode()
    name = 'logberg_refused_attempts_total{event="request_refused"} '
    return sum(int(line.removeprefix(name)) for line in text.splitlines() if line.startswith(name))


def test_a_removed_token_works_no_more_after_sighup(cluster: RunningCluster) -> None:
    n = cluster.leader()
    config = cluster.folder / "config" / f"controller-{n}.toml"
    whole = config.read_text()
    extra = f'[[tokens]]\nprincipal = "User:leaver"\nsha256 = "{sha256(b"leaver").hexdigest()}"\n'

    def reload(text: str, says: str) -> None:
        said = cluster.output(f"controller-{n}").count(says)
        config.write_text(text)
        cluster.controller(n).signal(signal.SIGHUP)
        cluster.until(lambda: cluster.output(f"controller-{n}").count(says) > said, says)

    try:
        reload(f"{whole}\n{extra}", "tokens_reloaded")
        assert cluster.ask(cluster.url(n), "GET", "/v1/topics", token="leaver").status == 200
        reload("not TOML", "certificates_not_reloaded")
        assert cluster.ask(cluster.url(n), "GET", "/v1/topics", token="leaver").status == 200
        reload(whole, "tokens_reloaded")
        assert cluster.ask(cluster.url(n), "GET", "/v1/topics", token="leaver").status == 401
        assert cluster.ask(cluster.url(n), "GET", "/v1/topics").status == 200
    finally:
        config.write_text(whole)


def test_a_header_that_is_not_utf_8_is_named(cluster: RunningCluster) -> None:
    port = int(cluster.url(cluster.leader()).rpartition(":")[2])
    with raw(cluster, port) as sock:
        sock.sendall(
            b"GET /v1/topics HTTP/1.1\r\nhost: 127.0.0.1\r\nx-logberg-reason: \xff\r\n"
            b"authorization: Bearer " + cluster.token.encode() + b"\r\n\r\n"
        )
        reply = sock.recv(65536)
    assert reply.startswith(b"HTTP/1.1 400 ")
    assert b"x-logberg-reason is not UTF-8" in reply.lower().replace(b"utf-8", b"UTF-8")


def test_the_command_line_says_what_to_do_about_a_wrong_token(
    cluster: RunningCluster, tmp_path: Path
) -> None:
    wrong = tmp_path / "token"
    wrong.write_text("qk_wrong\n")
    said = logberg("topics", "list", "--data", str(cluster.folder), "--token-file", str(wrong))
    assert said.code == 1
    assert "UNAUTHENTICATED" in said.err
    assert "--token-file" in said.err
    assert "Traceback" not in said.err


def pair_of(folder: Path, cluster_id: str, uri: str) -> Path:
    authority = LocalCertificateAuthority(folder, cluster_id, dt.datetime.now(dt.UTC))
    return authority.issue("someone", uri)[0]


def test_a_certificate_of_another_authority_is_refused(
    cluster: RunningCluster, tmp_path: Path
) -> None:
    own = cluster.local.cluster_id
    foreign = pair_of(tmp_path / "ca", own, f"user://{own}/admin")
    with pytest.raises((ssl.SSLError, ConnectionError)):
        post(cluster, {"topics": [{"name": "mine"}]}, cert=foreign)


def test_a_certificate_for_another_cluster_is_refused(cluster: RunningCluster) -> None:
    named = pair_of(
        cluster.folder / "certs", cluster.local.cluster_id, "user://another-cluster-0001/admin"
    )
    answer = post(cluster, {"topics": [{"name": "mine"}]}, cert=named)
    assert answer.status == 401, answer
    assert "another-cluster-0001" in answer.body["message"]
    assert cluster.local.cluster_id in answer.body["message"]


def test_the_command_line_says_what_to_do_about_another_authority(
    cluster: RunningCluster, tmp_path: Path
) -> None:
    pair_of(tmp_path / "ca", cluster.local.cluster_id, "user://x/y")
    said = logberg(
        "topics", "list", "--data", str(cluster.folder), "--ca", str(tmp_path / "ca" / "ca.crt")
    )
    assert said.code == 1
    assert "--ca" in said.err
    assert "Traceback" not in said.err


def test_a_brokers_certificate_speaks_for_that_broker_only(cluster: RunningCluster) -> None:
    certificate = cluster.folder / "certs" / "broker-1.crt"
    body = fetch(cluster, broker_id=2, registration=REGISTRATION)
    answer = post(cluster, body, FETCH, cert=certificate)
    assert answer.status == 403, answer
    assert answer.body["code"] == "CLUSTER_AUTHORIZATION_FAILED"
    assert "Broker:1 may not" in answer.body["message"]
    assert "the credentials of Broker:2" in answer.body["message"]
    assert set(cluster.broker_states()) == {1}


def test_a_controllers_certificate_registers_no_broker(cluster: RunningCluster) -> None:
    certificate = cluster.folder / "certs" / "controller-1.crt"
    body = fetch(cluster, broker_id=2, registration=REGISTRATION)
    answer = post(cluster, body, FETCH, cert=certificate)
    assert answer.status == 403, answer
    assert set(cluster.broker_states()) == {1}


def test_a_user_can_t_act_as_a_broker_whose_incarnation_it_has_read(
    cluster: RunningCluster,
) -> None:
    shown = cluster.ask(cluster.url(cluster.leader()), "GET", "/v1/brokers/1").body["broker"]
    body = fetch(
        cluster,
        1,
        incarnationId=shown["incarnationId"],
        brokerEpoch=shown["brokerEpoch"],
        wantedState="stopping",
    )
    answer = post(cluster, body, FETCH, token="")
    assert answer.status == 403, answer
    assert "User:admin can't speak for broker 1" in answer.body["error"]["message"]
    assert cluster.broker_states() == {1: "online"}


def test_a_token_goes_through_an_agent_and_a_certificate_needs_a_grant(
    cluster: RunningCluster,
) -> None:
    agent = cluster.local.agent_url(1)
    change = {"topics": [{"name": "through-an-agent", "numPartitions": 1, "replicationFactor": 1}]}
    answer = cluster.ask(agent, "POST", "/v1/topics", change)
    assert answer.status == 200, answer
    assert cluster.carriers[answer.headers["x-logberg-request-id"]] == "User:admin"
    assert cluster.ask(agent, "POST", "/v1/topics", change, token="guessed").status == 401
    authority = LocalCertificateAuthority(
        cluster.folder / "certs", cluster.local.cluster_id, dt.datetime.now(dt.UTC)
    )
    cert, _ = authority.issue("alice", f"user://{cluster.local.cluster_id}/alice")
    answer = cluster.ask(agent, "DELETE", "/v1/topics/through-an-agent", cert=cert)
    assert answer.status == 403, answer
    assert "[[delegations]]" in answer.body["message"]
    assert cluster.ask(agent, "DELETE", "/v1/topics/through-an-agent").status == 200


# -- brokers -------------------------------------------------------------------------------------


def test_another_clusters_broker_is_sent_away(cluster: RunningCluster) -> None:
    body = fetch(cluster, clusterId="another-cluster-0001", registration=REGISTRATION)
    answer = post(cluster, body, FETCH)
    assert answer.status == 409, answer
    assert answer.body["error"]["code"] == "INCONSISTENT_CLUSTER_ID"
    assert cluster.local.cluster_id in answer.body["error"]["message"]
    assert "another-cluster-0001" in answer.body["error"]["message"]


def test_a_live_brokers_id_is_taken(cluster: RunningCluster) -> None:
    body = fetch(cluster, broker_id=1, registration=REGISTRATION)
    answer = post(cluster, body, FETCH)
    assert answer.status == 409, answer
    assert answer.body["error"]["code"] == "DUPLICATE_BROKER_REGISTRATION"
    assert "stop it" in answer.body["error"]["message"]


def test_a_stale_broker_epoch_is_refused(cluster: RunningCluster) -> None:
    described = cluster.ask(cluster.url(cluster.leader()), "GET", "/v1/brokers/1").body
    epoch = described["broker"]["brokerEpoch"]
    for stale in (0, epoch + 1):
        answer = post(cluster, fetch(cluster, 1, brokerEpoch=stale), FETCH)
        assert answer.status == 409, answer
        assert answer.body["error"]["code"] == "STALE_BROKER_EPOCH"
        assert "stop this process" in answer.body["error"]["message"]
    # The right epoch, from another process.
    answer = post(cluster, fetch(cluster, 1, brokerEpoch=epoch), FETCH)
    assert answer.body["error"]["code"] == "STALE_BROKER_EPOCH", answer


def test_an_epoch_from_the_future_is_not_served(cluster: RunningCluster) -> None:
    body = fetch(cluster, registration=REGISTRATION, fetchedEpoch=2**30)
    answer = post(cluster, body, FETCH)
    assert answer.status == 421, answer
    assert answer.body["error"]["code"] == "UNKNOWN_LEADER_EPOCH"


# -- a standby -----------------------------------------------------------------------------------


def test_a_standby_names_the_leader(cluster: RunningCluster) -> None:
    leader, standby = cluster.leader(), cluster.standby()
    change = {"topics": [{"name": "mine"}]}
    requests: list[tuple[str, str, Any]] = [
        ("POST", "/v1/topics", change),
        ("DELETE", "/v1/topics/before", None),
        ("GET", "/v1/topics", None),
        ("GET", "/v1/brokers", None),
        ("POST", FETCH, fetch(cluster, registration=REGISTRATION)),
    ]
    for method, path, body in requests:
        answer = cluster.ask(cluster.url(standby), method, path, body)
        assert answer.status == 421, (path, answer)
        error = answer.body.get("error") or answer.body
        assert error["code"] == "NOT_CONTROLLER"
        assert error["leaderUrl"] == cluster.url(leader)
        assert error["leaderId"] == leader
        assert error["retriable"]
    stale = cluster.ask(cluster.url(standby), "GET", "/v1/topics?consistency=stale")
    assert stale.status == 200
    assert "before" in {topic["name"] for topic in stale.body["topics"]}


# -- the quorum's port ---------------------------------------------------------------------------


def quorum_port(cluster: RunningCluster, n: int) -> int:
    return int(cluster.local.quorum_address(n).rpartition(":")[2])


def as_controller(cluster: RunningCluster, n: int, *, named: str = "controller-2") -> ssl.SSLSocket:
    """A connection that has passed TLS, as only a controller's certificate lets it."""
    context = cluster.context(cluster.folder / "certs" / f"{named}.crt")
    sock = socket.create_connection(("127.0.0.1", quorum_port(cluster, n)), timeout=20)
    return context.wrap_socket(sock, server_hostname="127.0.0.1")


MALFORMED = {
    "garbage": bytes(range(256)) * 20,
    "http": b"GET / HTTP/1.1\r\nhost: logberg\r\n\r\n",
    "over the cap": header(2**31, 0) + b"x" * 1000,
    "over the greeting's cap": header(100_000, 0) + b"x" * 100_000,
    "a wrong checksum": header(5, 1) + MAGIC + b"\x01",
    "another protocol": framed(b"abcd"),
}


def epochs(cluster: RunningCluster) -> set[int]:
    return {(cluster.status(n) or {})["leaderEpoch"] for n in cluster.local.controllers}


@pytest.mark.parametrize("what", list(MALFORMED))
def test_malformed_bytes_on_the_quorums_port_end_that_connection_only(
    cluster: RunningCluster, what: str
) -> None:
    before, leader = epochs(cluster), cluster.leader()
    for n in cluster.local.controllers:
        # Without TLS: the handshake fails. With it: the frame is judged.
        with socket.create_connection(("127.0.0.1", quorum_port(cluster, n)), timeout=20) as sock:
            sock.sendall(MALFORMED[what])
            read_to_the_end(sock)
        with as_controller(cluster, n) as context, suppress(OSError):
            context.sendall(MALFORMED[what])
            read_to_the_end(context)
    assert epochs(cluster) == before
    assert cluster.leader() == leader


def test_half_frames_and_two_hundred_silent_connections_do_not_disturb_the_quorum(
    cluster: RunningCluster,
) -> None:
    before, leader = epochs(cluster), cluster.leader()
    with ExitStack() as stack:
        for _ in range(200):
            address = ("127.0.0.1", quorum_port(cluster, leader))
            stack.enter_context(socket.create_connection(address, timeout=20))
        half = []
        for n in cluster.local.controllers:
            with suppress(OSError):
                sock = stack.enter_context(as_controller(cluster, n))
                sock.sendall(header(4000, 0) + MAGIC + b"\x01")
                half.append(sock)
        cluster.create("while-strangers-hold-the-door")
        for sock in half:
            read_to_the_end(sock)
    assert epochs(cluster) == before
    assert cluster.leader() == leader


def test_a_brokers_certificate_does_not_open_the_quorums_port(cluster: RunningCluster) -> None:
    said = greeted(cluster, "broker-1", node_id=2)
    assert "node 2 shows a certificate for 'broker://" in said


def test_a_certificate_that_names_nobody_does_not_open_it_either(cluster: RunningCluster) -> None:
    issue_without_a_name(cluster.folder / "certs")
    assert "node 2 shows a certificate for nobody" in greeted(cluster, "nobody", node_id=2)


def test_another_clusters_controller_is_told_so(cluster: RunningCluster) -> None:
    said = greeted(cluster, "controller-2", node_id=2, cluster_id="another-cluster-0001")
    assert "belongs to cluster another-cluster-0001" in said


def greeted(cluster: RunningCluster, named: str, node_id: int, cluster_id: str = "") -> str:
    """What controller 1 says to a greeting by `node_id` under somebody's certificate."""
    greeting = Greeting(
        WIRE_FORMAT, cluster_id or cluster.local.cluster_id, node_id, b"d" * 16, False, b""
    )
    hello = Hello(b"instance", b"the-link", bytes(64), dumps(greeting))
    with as_controller(cluster, 1, named=named) as sock:
        sock.sendall(framed_hello(hello))
        return read_to_the_end(sock).decode(errors="replace")


def issue_without_a_name(folder: Path) -> None:
    """A certificate `nobody` of the cluster's own authority, with no URI in it."""
    authority = x509.load_pem_x509_certificate((folder / "ca.crt").read_bytes())
    key = serialization.load_pem_private_key((folder / "controller-2.key").read_bytes(), None)
    ca_key = serialization.load_pem_private_key((folder / "ca.key").read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    assert isinstance(ca_key, ec.EllipticCurvePrivateKey)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([]))
        .issuer_name(authority.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(authority.not_valid_before_utc)
        .not_valid_after(authority.not_valid_after_utc)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=True)
        .sign(ca_key, hashes.SHA256())
    )
    (folder / "nobody.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "nobody.key").write_bytes((folder / "controller-2.key").read_bytes())


# -- afterwards ----------------------------------------------------------------------------------


def test_nothing_of_it_was_lost_or_let_in(cluster: RunningCluster) -> None:
    assert "mine" not in cluster.topics()
    assert "x" not in cluster.topics()
    assert set(cluster.broker_states()) == {1}
    for child in cluster.local.children:
        assert "Traceback" not in cluster.output(child.name)
    cluster.check_nothing_lost()
