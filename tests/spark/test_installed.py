"""Spark on the wheel, in a project that has packages with our names (ADR 0026).

Spark's workers import our modules by name, and a cluster's workers get them in a file.
"""

import json
import zipfile
from pathlib import Path

import pytest

from tests.packaging.alien import ROOT, Alien, build

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def alien(tmp_path_factory: pytest.TempPathFactory) -> Alien:
    wheel = build(ROOT, "wheel", tmp_path_factory.mktemp("dist"))
    return Alien(tmp_path_factory.mktemp("alien"), wheel)


def test_a_job_answers_on_spark_as_it_does_without(alien: Alien) -> None:
    command = alien.bin / "logberg"
    alien.run(command, "audit", "generate", "--out", "history", "--records", "2000")
    job = (command, "audit", "run", "availability", "history/controller-1", "--output", "json")
    rows = json.loads(alien.run(*job, "--engine", "embedded"))
    said = alien.run(*job, "--engine", "spark", "--memory", "1g")
    assert rows
    assert json.loads(said[said.index("\n[") if "\n[" in said else 0 :]) == rows


def test_the_file_for_workers_holds_the_names_of_the_wheel(alien: Alien) -> None:
    said = alien.run(alien.python, "-m", "logberg.spark", "workers.zip")
    assert "spark.archives=" in said
    script = Path(said.splitlines()[-1].removeprefix("and the script "))
    assert script.is_relative_to(alien.bin.parent)
    with zipfile.ZipFile(alien.folder / "workers.zip") as archive:
        names = set(archive.namelist())
    wanted = {
        "logberg/__init__.py",
        "logberg/audit/spark/source/log_source.py",
        "logberg/ledger/batch.py",
    }
    assert wanted <= names
    assert not [name for name in names if name.startswith(("audit/", "ledger/", "runtime/"))]
    # What a worker has: the file, and no site-packages of its own.
    alien.run(
        alien.python,
        *("-I", "-S", "-c"),
        "import sys, zipfile\n"
        "zipfile.ZipFile('workers.zip').extractall('unpacked')\n"
        "sys.path.insert(0, 'unpacked')\n"
        "from logberg.audit.questions.subjects import resource\n"
        "from logberg.audit.places.replicas import open_all\n"
        "from logberg.ledger.batch import parse\n"
        "assert 'unpacked' in sys.modules['logberg.ledger.batch'].__file__\n",
    )
