"""What pip installs: one import root, usable beside anybody's own packages (ADR 0026)."""

import http.client
import json
import tarfile
import time
import zipfile
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from logberg.local.ports import free_port_base
from tests.conformance.ports import free_port
from tests.packaging.alien import PATIENCE_S, PROJECT, ROOT, WHEEL, Alien, build, read_until
from tests.process.leftovers import nothing_is_left

pytestmark = pytest.mark.process

VERSION = PROJECT["project"]["version"]


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_wheel_has_one_name_at_its_top(wheel: Path) -> None:
    top = {name.partition("/")[0] for name in contents(wheel)}
    assert top == {"logberg", f"logberg-{VERSION}.dist-info"}


def test_the_wheel_holds_every_module_and_file_line_by_line(wheel: Path) -> None:
    held = contents(wheel)
    for name in WHEEL["only-include"]:
        target = WHEEL["sources"].get(name, name)
        for file in (ROOT / name).rglob("*"):
            if not file.is_file() or "__pycache__" in file.parts:
                continue
            there = held[str(target / file.relative_to(ROOT / name))]
            assert there.count(b"\n") == file.read_bytes().count(b"\n"), file


def test_the_source_distribution_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    sdist = build(ROOT, "sdist", tmp_path / "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "unpacked")
    (source,) = (tmp_path / "unpacked").iterdir()
    assert contents(build(source, "wheel", tmp_path / "wheel")) == contents(wheel)


def test_nothing_of_the_checkout_is_imported(alien: Alien) -> None:
    said = alien.program(
        "import importlib, json, logberg, pkgutil, sys\n"
        "import controller, metadata, runtime\n"
        "assert runtime.OWNER and metadata.OWNER and controller.OWNER\n"
        "for found in pkgutil.walk_packages(logberg.__path__, 'logberg.'):\n"
        "    if not found.name.endswith('__main__') and '.spark' not in found.name:\n"
        "        importlib.import_module(found.name)\n"
        "print(json.dumps([m.__file__ for m in sys.modules.values() if getattr(m, '__file__', 0)]))"
    )
    files = [Path(file) for file in json.loads(said)]
    ours = [ROOT / name for name in (*WHEEL["only-include"], "tests", "benchmarks")]
    assert [file for file in files if any(file.is_relative_to(one) for one in ours)] == []
    assert sum("/logberg/ledger/" in str(file) for file in files) > 10


def test_an_error_shows_the_line_of_the_repository(alien: Alien) -> None:
    said = alien.program(
        "import traceback\n"
        "from logberg.metadata.uuids import parse_uuid\n"
        "try: parse_uuid('?')\n"
        "except ValueError: traceback.print_exc(file=__import__('sys').stdout)\n"
    )
    assert "site-packages/logberg/metadata/uuids.py" in said


def test_the_demo_holds_its_claims(alien: Alien) -> None:
    said = alien.run(alien.bin / "logberg", "demo", "--data", alien.folder / "demo")
    assert "✗" not in said
    assert "proved: 3 logs" in said
    nothing_is_left(alien.folder)


def test_a_cluster_serves_commands_and_the_examples(alien: Alien) -> None:
    command = alien.bin / "logberg"
    ports = str(free_port_base())
    with alien.cluster(alien.folder / "logberg-data", "--brokers", "1", "--port-base", ports):
        alien.run(command, "topics", "create", "orders", "--replication-factor", "1")
        with alien.start(alien.python, "-u", "examples/watch_log.py") as watch:
            read_until(watch, " CreateTopics: TOPIC_RECORD")
        with alien.start(alien.python, "-u", "examples/embed_agent.py") as agent:
            read_until(agent, "online")
            alien.run(command, "topics", "create", "parcels", "--replication-factor", "2")
            read_until(agent, "parcels-0")
            agent.terminate()
            said, _ = agent.communicate(timeout=60)
            assert "gone" in said
            assert agent.returncode == 0, said
    assert "orders" in alien.run(command, "audit", "who", "logberg-data", "topic:orders")
    nothing_is_left(alien.folder)


def test_the_examples_pass_a_strict_type_check_against_the_wheel(alien: Alien) -> None:
    # One example is a package, and msgpack has no types.
    options = ("--strict", "--explicit-package-bases", "--disable-error-code=import-untyped")
    said = alien.run(alien.python, "-m", "mypy", *options, "examples")
    files = len(list((ROOT / "examples").rglob("*.py")))
    assert f"no issues found in {files} source files" in said
    wrong = alien.folder / "wrong.py"
    wrong.write_text("import logberg\nlogberg.nonsense\nlogberg.Endpoint(1, 2, 3)\n")
    with alien.start(alien.python, "-m", "mypy", "--strict", "wrong.py") as check:
        said, _ = check.communicate(timeout=PATIENCE_S)
    assert 'wrong.py:2: error: Module has no attribute "nonsense"' in said
    assert 'wrong.py:3: error: Argument 1 to "Endpoint" has incompatible type "int"' in said


def counted(port: int, key: str) -> dict[str, int]:
    """Count a key by way of one of the processes, following it to another one."""
    url = f"http://127.0.0.1:{port}/{key}"
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        at = urlsplit(url)
        connection = http.client.HTTPConnection(str(at.hostname), at.port, timeout=PATIENCE_S)
        connection.request("POST", at.path)
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        if answer.status == 200:
            found: dict[str, int] = json.loads(body)
            return found
        url = answer.headers.get("location", url)
        assert answer.status in (307, 503), body
        time.sleep(0.01)
    raise AssertionError(f"{key} was never counted; the last answer was {body!r}")


def test_a_sharded_service_counts_each_key_at_one_broker(alien: Alien) -> None:
    command, folder, base = alien.bin / "logberg", alien.folder / "shards", free_port_base()
    service = alien.folder / "examples" / "sharded_counters.py"
    ports = (free_port(), free_port())
    with (
        alien.cluster(folder, "--brokers", "0", "--port-base", str(base)),
        alien.start(alien.python, service, "1", str(ports[0]), folder) as one,
        alien.start(alien.python, service, "2", str(ports[1]), folder) as two,
    ):
        where = ("--data", folder)
        until = time.monotonic() + PATIENCE_S
        while alien.run(command, "brokers", "list", *where).count("online") < len(ports):
            assert time.monotonic() < until, "the services never came online"
        shards = ("--partitions", "8", "--replication-factor", "1")
        alien.run(command, "topics", "create", "counters", *shards, *where)
        keys = [f"key-{n}" for n in range(20)]
        for turn in (1, 2):
            for n, key in enumerate(keys):
                assert counted(ports[(n + turn) % 2], key) == {key: turn}
        for process in (one, two):
            process.terminate()
            said, _ = process.communicate(timeout=PATIENCE_S)
            assert process.returncode == 0, said
    nothing_is_left(alien.folder)
