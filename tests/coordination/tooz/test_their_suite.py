"""OpenStack's own suite of tests runs on our driver: an outside proof.

The suite is a part of the package tooz. It skips what a driver says it can't do, so the skips are
counted too: of ours it skips one test, which is for three other drivers by their class.
"""

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from benchmarks.peers import tools
from tests.coordination.servers.etcd_servers import EtcdServers
from tests.coordination.servers.tier import serving, skip_unless_run
from tests.coordination.servers.zookeeper import ZooKeeperServers
from tests.process.running_cluster import running

REQUIREMENTS = Path(__file__).with_name("requirements.txt")
LIMIT_S = 300


@pytest.fixture(scope="module")
def imported() -> Path:
    """A folder with what the suite imports."""
    skip_unless_run()
    digest = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:12]
    folder = tools.cache() / f"tooz-suite-{digest}-py{sys.version_info.minor}"
    if not folder.exists():
        unfinished = folder.with_suffix(".unfinished")
        files = ["--target", str(unfinished), "--requirement", str(REQUIREMENTS)]
        subprocess.run(
            [sys.executable, "-m", "pip", "install", "--quiet", "--upgrade", *files],
            check=True,
        )
        unfinished.rename(folder)
    return folder


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(lambda: ZooKeeperServers(tmp_path_factory.mktemp("zookeeper"))) as servers:
        yield f"logberg+zookeeper://{','.join(servers.endpoints)}"


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(lambda: EtcdServers(tmp_path_factory.mktemp("etcd"))) as servers:
        yield f"logberg+etcd+http://{','.join(servers.endpoints)}"


@pytest.fixture(scope="module")
def quorum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("quorum")
    with running(folder) as cluster:
        hosts = [cluster.url(n).removeprefix("https://") for n in cluster.local.controllers]
        options = urlencode({"token": cluster.token, "ca": cluster.local.file.ca})
        yield f"logberg+https://{','.join(hosts)}?{options}"


@pytest.mark.timeout(2 * LIMIT_S)
@pytest.mark.parametrize("store", ["quorum", "zookeeper", "etcd"])
def test_tooz_finds_nothing_wrong(
    imported: Path, store: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    url = request.getfixturevalue(store)
    flags = ["-p", "no:cacheprovider", "--rootdir", str(tmp_path), "--pyargs"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *flags, "tooz.tests.test_coordination"],
        cwd=tmp_path,
        env={**os.environ, "TOOZ_TEST_URL": url, "PYTHONPATH": str(imported)},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    print(done.stdout[-2_000:], done.stderr[-2_000:])
    assert done.returncode == 0
    assert re.search(r"\b82 passed, 1 skipped\b", done.stdout)
