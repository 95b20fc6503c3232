"""Who may coordinate on real controllers: tokens, certificates, and whose session it is."""

import datetime as dt
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coordination.backend import Auth, Claim, Commit, Operation, Resource
from coordination.connect import connect
from coordination.errors import AuthFailed, ConfigError, SessionLost
from logberg.local.local_ca import LocalCertificateAuthority
from tests.process.running_cluster import RunningCluster, running

pytestmark = pytest.mark.process
REQUEST_S = 20.0
AT_ONCE_S = 8.0
"""Far less than a request may take: nobody tried until the time was over."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    folder = tmp_path_factory.mktemp("credentials")
    with running(folder, principals=("User:alice", "User:bob")) as started:
        everybody = (
            "acls",
            "add",
            "User:*",
            "all",
            "cluster:coordination:",
            "--prefixed",
            "--data",
            ".",
        )
        said = started.command(*everybody)
        assert said.code == 0, said
        yield started


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> LocalCertificateAuthority:
    """An authority that the controllers don't know."""
    now = dt.datetime.now(dt.UTC)
    return LocalCertificateAuthority(tmp_path_factory.mktemp("others"), "other", now)


@pytest.fixture(scope="module")
def ours(cluster: RunningCluster) -> LocalCertificateAuthority:
    own = Path(cluster.local.file.ca).parent
    return LocalCertificateAuthority(own, cluster.local.cluster_id, dt.datetime.now(dt.UTC))


def client(cluster: RunningCluster, who: str | None = None, **options: Any) -> Any:
    hosts = ",".join(cluster.url(n).removeprefix("https://") for n in cluster.local.controllers)
    auth = None if who is None else Auth(token=cluster.token_of(who))
    given = {"ca": str(cluster.local.file.ca), **options}
    url = f"quorum+https://{hosts}"
    return connect(url, auth=auth, ttl=60.0, request_timeout=REQUEST_S, **given)


async def refused_at_once(connecting: Any) -> str:
    began = time.monotonic()
    with pytest.raises(AuthFailed) as refusal:
        await connecting
    assert time.monotonic() - began < AT_ONCE_S
    assert not refusal.value.retryable
    return str(refusal.value)


async def test_a_token_and_a_certificate_each_name_a_principal(cluster, ours) -> None:
    cert, key = ours.issue("carol", f"user://{cluster.local.cluster_id}/carol")
    async with (
        client(cluster, "User:alice") as alice,
        client(cluster, cert=str(cert), key=str(key)) as carol,
    ):
        listed = cluster.ask(cluster.url(cluster.leader()), "GET", "/v1/coordination/sessions").body
        owners = {each["sessionId"]: each["owner"] for each in listed["sessions"]}
        assert owners[alice.session.id] == "User:alice"
        assert owners[carol.session.id] == "User:carol"


async def test_wrong_credentials_are_refused_at_once(cluster, ours, others, tmp_path) -> None:
    wrong = tmp_path / "token"
    wrong.write_text("lbt-nonsense\n")
    await refused_at_once(client(cluster, token_file=str(wrong)))
    await refused_at_once(client(cluster))
    said = await refused_at_once(client(cluster, "User:alice", ca=str(others.ca_path)))
    assert "certificate" in said
    stranger = others.issue("stranger", f"user://{cluster.local.cluster_id}/alice")
    pair = {"cert": str(stranger[0]), "key": str(stranger[1])}
    await refused_at_once(client(cluster, **pair))
    foreign = ours.issue("foreign", "user://another-cluster/alice")
    await refused_at_once(client(cluster, cert=str(foreign[0]), key=str(foreign[1])))


async def test_a_token_goes_to_controllers_of_its_own_cluster_only(cluster) -> None:
    known = {"cluster_id": cluster.local.cluster_id}
    async with client(cluster, "User:alice", **known):
        pass
    said = await refused_at_once(client(cluster, "User:alice", cluster_id="another"))
    assert "of cluster another" in said


WRONG_FILES = [
    ({"ca": "/nowhere/ca.crt"}, "/nowhere/ca.crt"),
    ({"cert": "/nowhere/a.crt"}, "cert and key belong together"),
    ({"token_file": "/nowhere/token"}, "the token file can't be read"),
    ({"tocken_file": "x"}, "no option 'tocken_file'"),
]


@pytest.mark.parametrize(("options", "said"), WRONG_FILES)
async def test_wrong_files_are_named(cluster, options: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        await client(cluster, **options)


async def test_nobody_acts_with_somebody_elses_session(cluster) -> None:
    """A session's id is no secret: every list shows it."""
    lock = Resource("lock", "l")
    async with client(cluster, "User:alice") as alice, client(cluster, "User:bob") as bob:
        theirs = alice.session.id
        async with alice.lock("l")():
            (entry,) = (await bob.backend.entries(lock)).entries
            write = Commit((Operation("upsert", "k", b"v"),), session=theirs)
            for attempt in (
                lambda: bob.backend.renew(theirs),
                lambda: bob.backend.end_session(theirs),
                lambda: bob.backend.enter(Claim(lock, "me", b"", theirs)),
                lambda: bob.backend.change(lock, entry.id, theirs, b"x"),
                lambda: bob.backend.leave(lock, entry.id, theirs, None),
                lambda: bob.backend.commit(write),
            ):
                with pytest.raises(AuthFailed, match="is not that of User:bob"):
                    await attempt()
            assert await bob.backend.entries(lock) == await alice.backend.entries(lock)
            assert await bob.backend.get("k") is None
        alice.session.check()
        bob.session.check()
        with pytest.raises(SessionLost):
            await bob.backend.renew("AAAAAAAAAAAAAAAAAAAAAA")
