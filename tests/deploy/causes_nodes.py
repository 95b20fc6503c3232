"""Causes of alerts: nodes that end, stall or change leaders; strangers, and old certificates."""

import datetime as dt
import http.client
import json
import resource
import signal
import socket
import ssl
import time
from contextlib import ExitStack, suppress
from pathlib import Path

from logberg.local.local_ca import LocalCertificateAuthority
from tests.deploy.alert_bench import AlertBench, FiredAlert, alert_bench
from tests.process.running_cluster import RunningCluster

CHANGES = 1_200
STALL_S = 20.0
STRANGERS = 1_200
DESCRIPTORS = 120
"""So few that a test can take all that others may have."""
WATCHERS, TURNED_AWAY = 60, 400


def of_nodes(folder: Path) -> list[FiredAlert]:
    """A killed broker, a stalled voter, many elections, a lost majority."""
    cluster = RunningCluster(folder / "cluster", brokers=2)
    with alert_bench(folder, cluster) as bench:
        cluster.create("fragile", partitions=4)
        broker = cluster.local.brokers[1]
        bench.fire(
            "kill a broker that leads partitions with one replica",
            broker.kill,
            "LogbergNodeDown",
            "LogbergLeaderlessPartitions",
        )
        broker.start()
        cluster.until(cluster.settled, "the broker is back")
        _stall_a_voter(bench)
        bench.fire(
            "stop and start the leader five times",
            lambda: [_restart_leader(cluster) for _ in range(5)],
            "LogbergLeaderChangesOften",
        )
        bench.quiet("LogbergBrokerNotServing")
        bench.fire(
            "kill two of three controllers",
            lambda: [cluster.controller(n).kill() for n in (1, 2)],
            "LogbergNoActiveController",
            "LogbergBrokerNotServing",
        )
    return bench.fired


def _stall_a_voter(bench: AlertBench) -> None:
    cluster = bench.cluster
    voter = cluster.controller(cluster.standby())
    began = time.monotonic()

    def stall() -> None:
        voter.signal(signal.SIGSTOP)
        change(cluster, CHANGES)

    bench.fire(
        f"freeze a standby (SIGSTOP) while {CHANGES:,} changes are made one after another",
        stall,
        "LogbergVoterLags",
        "LogbergVoterSilent",
    )
    time.sleep(max(0.0, STALL_S - (time.monotonic() - began)))
    bench.fire(
        f"let it go on after {STALL_S:.0f} s or more (SIGCONT)",
        lambda: voter.signal(signal.SIGCONT),
        "LogbergLoopStalls",
    )
    cluster.until(cluster.settled, "all is well")
    cluster.until(cluster.caught_up, "the stalled one has caught up")


def _restart_leader(cluster: RunningCluster) -> None:
    child = cluster.controller(cluster.leader())
    child.signal(signal.SIGTERM)
    assert child.wait(20.0)
    child.start()
    cluster.until(cluster.settled, "the old leader is back")
    time.sleep(1.5)  # A scrape sees each epoch.


def change(cluster: RunningCluster, count: int) -> None:
    """Make changes on one connection, each after the answer to the one before."""
    connection = http.client.HTTPSConnection(
        cluster.url(cluster.leader()).removeprefix("https://"),
        timeout=20,
        context=cluster.context(),
    )
    headers = {
        "authorization": f"Bearer {cluster.token}",
        "content-type": "application/json",
        "accept": "application/json",
    }
    try:
        for number in range(count):
            new = {"name": f"change-{number}", "numPartitions": 1, "replicationFactor": 1}
            connection.request("POST", "/v1/topics", json.dumps({"topics": [new]}), headers)
            answer = connection.getresponse()
            said = answer.read()
            assert answer.status == 200, said
    finally:
        connection.close()


def of_doors(folder: Path) -> list[FiredAlert]:
    """Connections without number, wrong tokens, certificates that end."""
    cluster = RunningCluster(folder / "cluster", brokers=1, require_authentication=True)
    cluster.limit_descriptors(DESCRIPTORS)
    with alert_bench(folder, cluster) as bench, ExitStack() as held:
        bench.fire(
            f"ask {STRANGERS:,} times with a wrong token",
            lambda: _knock_for_a_while(cluster),
            "LogbergStrangersKnock",
        )
        bench.fire(
            "give a controller a certificate of one day, and reload it (SIGHUP)",
            lambda: _expire(cluster, 1),
            "LogbergCertificateExpires",
            "LogbergCertificateExpiresNow",
        )
        leader = cluster.url(cluster.leader()).removeprefix("https://")
        bench.fire(
            f"{WATCHERS} callers of one machine hold a request open, and {TURNED_AWAY} more come",
            lambda: [_watch(cluster, leader, held), _idle(leader, TURNED_AWAY, held, "127.0.0.2")],
            "LogbergConnectionsTurnedAway",
        )
        bench.fire(
            "lower a controller's limit of descriptors to a tenth above what it has open",
            lambda: _limit(cluster.controller(cluster.leader()).pid),
            "LogbergFewDescriptorsLeft",
        )
    return bench.fired


def _knock_for_a_while(cluster: RunningCluster) -> None:
    # Prometheus sees the first refusal apart: a figure that was not there before has no rate.

    _knock(cluster, 1)
    time.sleep(2.5)
    _knock(cluster, STRANGERS)


def _knock(cluster: RunningCluster, count: int) -> None:
    host = cluster.url(1).removeprefix("https://")
    connection = http.client.HTTPSConnection(host, timeout=20, context=cluster.context())
    headers = {"authorization": "Bearer " + "x" * 43}
    refused = 0
    until = time.monotonic() + 120
    while refused < count:
        assert time.monotonic() < until, f"{refused} were refused"
        with suppress(http.client.HTTPException, OSError):
            connection.request("GET", "/v1/topics", headers=headers)
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 401, answer.status
            refused += 1
            continue
        connection.close()
    connection.close()


def _expire(cluster: RunningCluster, n: int) -> None:
    authority = LocalCertificateAuthority(
        cluster.folder / "certs", cluster.local.cluster_id, dt.datetime.now(dt.UTC)
    )
    uri = f"quorum://{cluster.local.cluster_id}/{n}"
    authority.issue_new(f"controller-{n}", uri, days=1)
    cluster.controller(n).signal(signal.SIGHUP)


def _watch(cluster: RunningCluster, host: str, held: ExitStack) -> None:
    """Hold as many requests open as one machine may."""
    context = cluster.context()
    head = (
        f"GET /v1/watch?resource=topic:none&waitMs=60000 HTTP/1.1\r\nhost: {host}\r\n"
        f"authorization: Bearer {cluster.token}\r\n\r\n"
    ).encode()
    for _ in range(WATCHERS):
        with suppress(OSError, ssl.SSLError):
            plain = _connect(host, "127.0.0.2", held)
            secured = context.wrap_socket(plain, server_hostname="127.0.0.1")
            held.callback(secured.close)
            secured.sendall(head)


def _limit(pid: int) -> None:
    most = len(list(Path(f"/proc/{pid}/fd").iterdir())) * 11 // 10
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (most, most))


def _idle(address: str, count: int, held: ExitStack, source: str) -> None:
    for _ in range(count):
        with suppress(OSError):
            _connect(address, source, held)


def _connect(address: str, source: str, held: ExitStack) -> socket.socket:
    host, _, port = address.rpartition(":")
    sock = socket.create_connection((host, int(port)), 5, source_address=(source, 0))
    held.callback(sock.close)
    return sock
