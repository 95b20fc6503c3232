"""The container image: its root tree, run as the image says, makes a change.

It takes minutes, so only `make image` runs it. It needs root, and installs Debian's mmdebstrap,
buildah, crun and runc.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from logberg.version import VERSION
from tests.conformance.ports import free_port
from tests.debian import NotInstalledError, install
from tests.deploy.image_layout import OciImage, read_image
from tests.deploy.image_run import CHROOT, CONTAINER, ImageRun, Mounted
from tests.docs import source
from tests.process.running_cluster import logberg

pytestmark = [
    pytest.mark.process,
    pytest.mark.slow,
    pytest.mark.skipif(
        os.environ.get("LOGBERG_IMAGE") != "1", reason="it takes minutes: `make image`"
    ),
]
BUILD = source.ROOT / "deploy" / "container" / "build.sh"
USER = 10001
BUILD_S = 900
READY_S = 60.0


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> OciImage:
    tools = ("mmdebstrap", "buildah", "crun", "runc")
    try:
        install(*tools, is_there=lambda: all(shutil.which(tool) for tool in tools))
    except NotInstalledError as error:
        pytest.skip(str(error))
    out = Path(os.environ.get("LOGBERG_IMAGE_OUT") or tmp_path_factory.mktemp("image"))
    if not (out / "oci").exists():
        done = subprocess.run(
            [str(BUILD), str(out)],
            capture_output=True,
            text=True,
            timeout=BUILD_S,
            check=False,
            env={**os.environ, "PYTHON": sys.executable},
        )
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return read_image(out / "oci")


@pytest.fixture(scope="module")
def root(image: OciImage, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("root")
    image.unpack(folder)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Certificates, configuration and a folder for data, as an operator has them."""
    port, quorum = free_port(), free_port()
    for name in ("etc", "data"):
        (tmp_path / name).mkdir()
    pki = tmp_path / "etc" / "pki"
    said = logberg(
        *("certs", "create", str(pki), "--cluster-id", "image-test"),
        *("--controller", "1=127.0.0.1", "--user", "admin"),
        cwd=tmp_path,
    )
    assert said.code == 0, said
    (tmp_path / "etc" / "controller.toml").write_text(
        f"""cluster_id = "image-test"
node_id = 1
data = "/var/lib/logberg/controller"
require_authentication = true
authorization = "on"
super_users = ["User:admin"]

[tls]
cert = "/etc/logberg/pki/controller-1.crt"
key = "/etc/logberg/pki/controller-1.key"
ca = "/etc/logberg/pki/ca.crt"

[[controllers]]
node_id = 1
quorum = "127.0.0.1:{quorum}"
http = "https://127.0.0.1:{port}"
"""
    )
    (tmp_path / "url").write_text(f"https://127.0.0.1:{port}")
    for path in (tmp_path / "etc", *(tmp_path / "etc").rglob("*"), tmp_path / "data"):
        os.chown(path, USER, USER)
    return tmp_path


def run_of(image: OciImage, root: Path, place: Path) -> ImageRun:
    mounts = [
        Mounted(place / "data", "/var/lib/logberg", True),
        Mounted(place / "etc", "/etc/logberg", False),
    ]
    return ImageRun(root, place / "run", image.settings, mounts)


def test_the_image_says_how_it_runs(image: OciImage) -> None:
    settings = image.settings
    assert settings["User"] == f"{USER}:{USER}"
    assert settings["Entrypoint"] == ["/usr/local/bin/logberg"]
    assert settings["Cmd"] == ["controller", "--config", "/etc/logberg/controller.toml"]
    assert settings["StopSignal"] == "SIGTERM"
    assert list(settings["Volumes"]) == ["/var/lib/logberg"]
    assert settings["Labels"]["org.opencontainers.image.version"] == VERSION
    assert settings["Labels"]["logberg.health"] == "/usr/local/bin/logberg-health live"
    assert image.config["os"] == "linux"


def test_its_tree_has_no_tool_that_changes_it_and_nothing_that_anybody_may_write(
    root: Path,
) -> None:
    assert "bookworm" in (root / "etc" / "os-release").read_text()
    for tool in ("apt-get", "pip", "pip3", "gcc"):
        assert not (root / "usr" / "bin" / tool).exists(), tool
    writable = [
        path
        for path in root.rglob("*")
        if not path.is_symlink()
        and path.lstat().st_mode & 0o002
        and path.relative_to(root).as_posix() not in ("tmp", "var/tmp", "run/lock")
        and not path.relative_to(root).as_posix().startswith("dev/")
    ]
    assert writable == []
    owned = [path for path in root.rglob("*") if path.lstat().st_uid == USER]
    assert owned == [root / "var" / "lib" / "logberg"]


@pytest.mark.parametrize("wanted", [CONTAINER, CHROOT])
def test_a_controller_of_the_image_makes_a_change(
    image: OciImage,
    root: Path,
    place: Path,
    wanted: str,
    record_property: Callable[[str, object], None],
) -> None:
    run = run_of(image, root, place)
    if wanted == CHROOT:
        run.how = CHROOT
    elif run.how != CONTAINER:
        pytest.skip(f"no container runs here: {run.why_not()}")
    record_property("ran in", run.how)
    print(f"the image's tree ran in: {run.how} {run.runtime if run.how == CONTAINER else ''}")
    health = ["/usr/local/bin/logberg-health", "ready"]
    down = run.call(health)
    assert down.returncode == 1, down
    assert "logberg-health:" in down.stderr, down

    output = place / "output.log"
    settings = image.settings
    process = run.start([*settings["Entrypoint"], *settings["Cmd"]], output)
    try:
        until = time.monotonic() + READY_S
        while run.call(health).returncode != 0:
            assert process.poll() is None, output.read_text()
            assert time.monotonic() < until, output.read_text()
        url = (place / "url").read_text()
        pki = place / "etc" / "pki"
        where = (
            *("--controllers", url, "--ca", str(pki / "ca.crt")),
            *("--cert", str(pki / "user-admin.crt"), "--key", str(pki / "user-admin.key")),
        )
        put = logberg("coordination", "keys", "put", "from", "outside", *where, cwd=place)
        assert put.code == 0, put
        got = logberg("coordination", "keys", "get", "from", *where, cwd=place)
        assert "outside" in got.out, got

        inside = _process_of(place / "data")
        status = (inside / "status").read_text()
        assert f"Uid:\t{USER}\t{USER}\t{USER}\t{USER}" in status
        assert "CapEff:\t0000000000000000" in status
        assert "NoNewPrivs:\t1" in status
        seen = {line.split()[4]: line.split()[5] for line in _mounts(inside)}
        assert "ro" in seen["/"].split(","), seen
        assert "rw" in seen["/var/lib/logberg"].split(","), seen
        with pytest.raises(OSError, match="Read-only file system"):
            (inside / "root" / "usr" / "new").write_text("")
        os.kill(int(inside.name), 15)
        assert process.wait(20) == 0, output.read_text()
    finally:
        process.kill()
        process.wait()
    verified = logberg("log", "verify", str(place / "data" / "controller"), cwd=place)
    assert verified.code == 0, verified


def _process_of(data: Path) -> Path:
    """/proc/… of the process that has files open in a folder of this machine."""
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            lines = (process / "cmdline").read_bytes().split(b"\0")
            uid = process.stat().st_uid
        except OSError:
            continue
        if uid == USER and b"controller" in lines and (process / "root/var/lib/logberg").exists():
            found = process / "root" / "var" / "lib" / "logberg"
            if found.samefile(data):
                return process
    raise AssertionError("no process of the image runs")


def _mounts(process: Path) -> list[str]:
    return (process / "mountinfo").read_text().splitlines()
