"""Another project, with the wheel installed in an environment of its own.

Rule: nothing of this checkout can be imported there. The project has packages with the same names
as ours in the repository, and each of them says that it belongs to the project. Third-party
packages come from the environment that runs the tests, since pip would only copy them.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tomllib
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
WHEEL = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
PATIENCE_S = 240.0


def build(source: Path, kind: str, out: Path) -> Path:
    """Build a `wheel` or an `sdist` from a folder or an unpacked sdist."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", kind, "--directory", str(out)],
        cwd=source,
        check=True,
        capture_output=True,
        text=True,
    )
    (built,) = out.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return built


class Alien:
    """The project's folder and its environment."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.folder = folder / "project"
        self.bin = folder / "venv" / "bin"
        self.python = self.bin / "python"
        venv.create(folder / "venv", symlinks=True)
        install = [sys.executable, "-m", "pip", "--python", str(self.python), "install", "--quiet"]
        offline = ["--disable-pip-version-check", "--no-deps", "--no-index"]
        subprocess.run([*install, *offline, str(wheel)], check=True, capture_output=True, text=True)
        # Python does not read the .pth files of a folder that a .pth file names, so the editable
        # install of this checkout stays out.
        (packages,) = (folder / "venv").glob("lib/python*/site-packages")
        (packages / "third_party.pth").write_text(sysconfig.get_path("purelib") + "\n")
        for name in (*WHEEL["sources"], "tests", "benchmarks"):
            package = self.folder / name
            package.mkdir(parents=True)
            (package / "__init__.py").write_text(f'OWNER = "the project with its own {name}"\n')
        shutil.copytree(ROOT / "examples", self.folder / "examples")

    @property
    def environment(self) -> dict[str, str]:
        """As a user of the project has it: the project's own packages come first."""
        ours = {name: value for name, value in os.environ.items() if not _is_ours(name)}
        return ours | {
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            "PYTHONPATH": str(self.folder),
        }

    @contextmanager
    def start(self, *command: str | Path) -> Iterator["subprocess.Popen[str]"]:
        """Run a command in the project's folder, killed at the end; errors go to the output."""
        process = subprocess.Popen(
            [str(part) for part in command],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        with process:
            try:
                yield process
            finally:
                process.kill()

    def run(self, *command: str | Path) -> str:
        """Run a command in the project's folder and return its output; it must succeed."""
        with self.start(*command) as process:
            said, _ = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, f"{command} said {said}"
        return said

    def program(self, text: str) -> str:
        """Run a program in the project's folder and return its output; it must succeed."""
        return self.run(self.python, "-c", text)

    @contextmanager
    def cluster(self, data: Path, *arguments: str) -> Iterator[None]:
        """`logberg up` in the project's folder, stopped in order at the end."""
        with self.start(self.bin / "logberg", "up", "--data", data, *arguments) as up:
            read_until(up, "^ready")
            yield
            up.send_signal(signal.SIGINT)
            said, _ = up.communicate(timeout=PATIENCE_S)
            assert up.returncode == 0, said


def _is_ours(variable: str) -> bool:
    return variable.startswith(("LOGBERG_", "PYTHON", "COV_"))


def read_until(process: "subprocess.Popen[str]", words: str) -> str:
    """Read the output up to the line that has these words."""
    assert process.stdout is not None
    said = ""
    for line in process.stdout:
        said += line
        if re.search(words, line):
            return said
    raise AssertionError(f"it never said {words!r}; it said {said}")
