"""Runs a program in an image's root tree: in a container where one can run, else by chroot.

Rule: either way the program has the image's user, a root that is read-only, no capability, and a
process namespace of its own. It uses this machine's loopback, so that a test can ask it.
"""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

CONTAINER, CHROOT = "a container", "chroot"
_RUNTIMES = {"crun": ["--cgroup-manager=disabled"], "runc": []}
"""The programs that run a container, each with its options."""


class Mounted(NamedTuple):
    """A folder of this machine, and where the program sees it."""

    source: Path
    target: str
    writable: bool


class ImageRun:
    """How a program is started in a root tree."""

    def __init__(
        self, root: Path, place: Path, settings: dict[str, Any], mounts: list[Mounted]
    ) -> None:
        """`settings`: the image's. `place`: an empty folder for the container's own files."""
        self._root = root
        self._place = place
        self._mounts = mounts
        self._user, self._group = (int(part) for part in settings["User"].split(":"))
        self._environment = settings["Env"]
        self._folder = settings["WorkingDir"]
        place.mkdir()
        self.runtime = self._runtime_that_runs()
        self.how = CONTAINER if self.runtime else CHROOT

    def start(self, arguments: list[str], output: Path) -> "subprocess.Popen[bytes]":
        """Start a program."""
        with output.open("ab") as sink:
            return subprocess.Popen(
                self._command(arguments),
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                start_new_session=True,
            )

    def call(self, arguments: list[str]) -> subprocess.CompletedProcess[str]:
        """Run a program to its end."""
        return subprocess.run(
            self._command(arguments), capture_output=True, text=True, timeout=120, check=False
        )

    def _runtime_that_runs(self) -> str:
        """Try each one; what it said is in a file of its name."""
        for name in _RUNTIMES:
            if shutil.which(name) is not None:
                command = self._in_container(name, ["/usr/bin/true"])
                done = subprocess.run(command, capture_output=True, timeout=60, check=False)
                (self._place / f"{name}.txt").write_bytes(done.stderr)
                if done.returncode == 0:
                    return name
        return ""

    def why_not(self) -> str:
        """What the runtimes said that could not run a container."""
        return "; ".join(path.read_text().strip() for path in self._place.glob("*.txt"))

    def _command(self, arguments: list[str]) -> list[str]:
        if self.how == CONTAINER:
            return self._in_container(self.runtime, arguments)
        return self._by_chroot(arguments)

    def _in_container(self, runtime: str, arguments: list[str]) -> list[str]:
        number = len(list(self._place.glob("bundle-*")))
        bundle = self._place / f"bundle-{number}"
        bundle.mkdir()
        (bundle / "config.json").write_text(json.dumps(self._bundle(arguments)))
        state = self._place / "state"
        name = f"logberg-{self._place.name}-{number}"
        options = ["--root", str(state), *_RUNTIMES[runtime]]
        return [runtime, *options, "run", "--bundle", str(bundle), name]

    def _bundle(self, arguments: list[str]) -> dict[str, Any]:
        binds = [
            {
                "destination": mount.target,
                "type": "bind",
                "source": str(mount.source),
                "options": ["bind", "rw" if mount.writable else "ro", "nosuid", "nodev"],
            }
            for mount in self._mounts
        ]
        return {
            "ociVersion": "1.0.2",
            "process": {
                "terminal": False,
                "user": {"uid": self._user, "gid": self._group},
                "args": arguments,
                "env": self._environment,
                "cwd": self._folder,
                "noNewPrivileges": True,
                "capabilities": {
                    kind: [] for kind in ("bounding", "effective", "permitted", "inheritable")
                },
            },
            "root": {"path": str(self._root), "readonly": True},
            "mounts": [
                {"destination": "/proc", "type": "proc", "source": "proc"},
                _tmpfs("/dev", "mode=755", "strictatime"),
                _tmpfs("/tmp", "mode=1777", "nodev"),
                *binds,
            ],
            "linux": {"namespaces": [{"type": kind} for kind in ("pid", "mount", "ipc", "uts")]},
        }

    def _by_chroot(self, arguments: list[str]) -> list[str]:
        """Mounts in a namespace of their own, which end with the program."""
        root = self._root
        devices = (
            "for d in null zero random urandom; do touch {0}/$d; mount --bind /dev/$d {0}/$d; done"
        )
        lines = [
            "set -e",
            f"mount --bind {root} {root}",
            f"mount -t tmpfs -o mode=1777 tmpfs {root}/tmp",
            f"mount -t tmpfs -o mode=755 tmpfs {root}/dev",
            devices.format(f"{root}/dev"),
            f"mount -t proc proc {root}/proc",
        ]
        for mount in self._mounts:
            lines.append(f"mount --bind {mount.source} {root}{mount.target}")
            if not mount.writable:
                lines.append(f"mount -o remount,ro,bind {root}{mount.target}")
        inside = " ".join(self._environment)
        ids = f"--reuid {self._user} --regid {self._group} --clear-groups"
        rights = "--bounding-set=-all --no-new-privs"
        within = f'/usr/bin/setpriv {ids} {rights} /usr/bin/env -C {self._folder} "$@"'
        lines += [
            f"mount -o remount,ro,bind {root}",
            f"exec env -i {inside} {shutil.which('chroot')} {root} {within}",
        ]
        space = [
            "unshare",
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "--propagation",
            "private",
        ]
        return [*space, "sh", "-c", "\n".join(lines), "sh", *arguments]


def _tmpfs(target: str, *options: str) -> dict[str, Any]:
    return {
        "destination": target,
        "type": "tmpfs",
        "source": "tmpfs",
        "options": ["nosuid", *options],
    }
