"""Programs and files that come as Go modules: Helm, kubeconform, Kubernetes' own API description.

Rule: the versions stand in `go/go.mod`, with their digests in `go.sum`. What was built stays in the
user's cache folder, so only the first run needs a network and some minutes.
"""

import hashlib
import json
import shutil
import subprocess
from pathlib import Path

from benchmarks.peers.tools import NoToolError, cache

HERE = Path(__file__).parent / "go"
HELM = "helm.sh/helm/v3/cmd/helm"
KUBECONFORM = "github.com/yannh/kubeconform/cmd/kubeconform"
DASHBOARD_CHECK = "./dashboard"
KUBERNETES = "k8s.io/kubernetes@v1.34.2"
_MOST_S = 1800


def go_tool(package: str) -> Path:
    """Return the program of a package that `go.mod` names, built if needed. Raises NoToolError."""
    name = package.rpartition("/")[2]
    program = cache() / f"{name}-{_digest()}"
    if not program.is_file():
        made = program.with_suffix(".new")
        _go("build", "-o", str(made), package)
        made.replace(program)
    return program


def kubernetes_api() -> Path:
    """Return the file in which Kubernetes describes its API. Raises NoToolError."""
    said = _go("mod", "download", "-json", KUBERNETES)
    return Path(json.loads(said)["Dir"]) / "api" / "openapi-spec" / "swagger.json"


def _go(*arguments: str) -> str:
    go = shutil.which("go")
    if go is None:
        raise NoToolError("'go' is not here. The test needs Go 1.26 or later: https://go.dev/dl")
    done = subprocess.run(
        [go, *arguments], cwd=HERE, capture_output=True, text=True, check=False, timeout=_MOST_S
    )
    if done.returncode != 0:
        raise NoToolError(f"go {arguments[0]} failed: {(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


def _digest() -> str:
    summed = hashlib.sha256()
    for path in sorted(HERE.rglob("*")):
        if path.is_file():
            summed.update(path.name.encode() + b"\0" + path.read_bytes())
    return summed.hexdigest()[:12]
