"""The Helm chart: what Helm renders, what Kubernetes' schemas say of it, and what it promises."""

import os
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.peers.tools import NoToolError
from logberg.processes.settings.controller_settings import ControllerSettings
from logberg.version import VERSION
from tests.deploy.go_tools import HELM, KUBECONFORM, KUBERNETES, go_tool, kubernetes_api
from tests.deploy.kubernetes_schemas import write_schemas
from tests.docs import source

CHART = source.ROOT / "deploy" / "helm" / "logberg"
NEEDED = ("clusterId=demo-cluster", "tlsSecret=demo-tls")
PRINCIPAL = "User:admin"
DIGEST = "ab" * 32
FULL = (
    *NEEDED,
    "clusterKeySecret=demo-key",
    "controllers=5",
    "antiAffinity=soft",
    f"tokens[0].principal={PRINCIPAL}",
    f"tokens[0].sha256={DIGEST}",
    f"superUsers[0]={PRINCIPAL}",
    "persistence.storageClass=fast",
    "priorityClassName=high",
)
_SECRET = re.compile(r"password|BEGIN [A-Z ]*PRIVATE KEY|Bearer ", re.IGNORECASE)

needs_helm = [
    pytest.mark.process,
    pytest.mark.slow,
    pytest.mark.skipif(os.environ.get("LOGBERG_KIT") != "1", reason="it builds Helm: `make kit`"),
]


def test_the_chart_is_of_this_release() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == VERSION
    assert chart["version"] == VERSION


@pytest.fixture(scope="module")
def helm() -> Path:
    try:
        return go_tool(HELM)
    except NoToolError as error:
        pytest.skip(str(error))


def ask(helm: Path, *arguments: str, values: tuple[str, ...] = ()) -> tuple[int, str]:
    """Run Helm on the chart; return its code and what it printed."""
    settings = [word for value in values for word in ("--set", value)]
    done = subprocess.run(
        [str(helm), *arguments, *settings], capture_output=True, text=True, timeout=120, check=False
    )
    return done.returncode, done.stdout + done.stderr


def rendered(helm: Path, values: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """What Helm renders, by kind and name."""
    # A Helm that isn't built for release believes in an old Kubernetes.
    where = ("--namespace", "meta", "--kube-version", KUBERNETES.rpartition("v")[2])
    code, text = ask(helm, "template", "prod", str(CHART), *where, values=values)
    assert code == 0, text
    found = [each for each in yaml.safe_load_all(text) if each]
    return {f"{each['kind']} {each['metadata']['name']}": each for each in found}


class TestRendered:
    """With Helm, built from its Go module."""

    pytestmark = needs_helm

    @pytest.mark.parametrize("values", [NEEDED, FULL], ids=["least", "full"])
    def test_helm_lint_accepts_it(self, helm: Path, values: tuple[str, ...]) -> None:
        code, text = ask(helm, "lint", "--strict", str(CHART), values=values)
        assert code == 0, text
        assert "1 chart(s) linted, 0 chart(s) failed" in text

    @pytest.mark.parametrize(
        ("values", "said"),
        [
            ((), "clusterId"),
            (("clusterId=demo",), "tlsSecret"),
            ((*NEEDED, "controllers=2"), "controllers"),
            ((*NEEDED, "authorization=yes"), "authorization"),
            ((*NEEDED, "clusterId=a b"), "clusterId"),
            ((*NEEDED, "tokens[0].principal=User:a", "tokens[0].sha256=plain"), "sha256"),
            ((*NEEDED, "tokens[0].principal=User:a", "tokens[0].token=plain"), "token"),
        ],
    )
    def test_wrong_values_are_refused(self, helm: Path, values: tuple[str, ...], said: str) -> None:
        code, text = ask(helm, "template", "prod", str(CHART), values=values)
        assert code != 0
        assert "values don't meet the specifications of the schema" in text
        assert said in text

    @pytest.mark.parametrize("values", [NEEDED, FULL], ids=["least", "full"])
    def test_kubernetes_schemas_accept_it_and_no_field_more(
        self, helm: Path, values: tuple[str, ...], tmp_path: Path
    ) -> None:
        manifests = list(rendered(helm, values).values())
        kinds = {(each["apiVersion"], each["kind"]) for each in manifests}
        schemas = write_schemas(kubernetes_api(), kinds, tmp_path)
        conform = [str(go_tool(KUBECONFORM)), "-strict", "-summary", "-schema-location", schemas]

        def judged() -> tuple[int, str]:
            text = yaml.safe_dump_all(manifests)
            done = subprocess.run(
                conform, input=text, capture_output=True, text=True, timeout=120, check=False
            )
            return done.returncode, done.stdout + done.stderr

        code, said = judged()
        assert code == 0, said
        assert f"Valid: {len(manifests)}, Invalid: 0, Errors: 0, Skipped: 0" in said
        # A misspelt field is found, so the check above can fail.
        manifests[-1]["spec" if "spec" in manifests[-1] else "data"] = {"replicaz": 3}
        manifests[-1]["metadata"]["noSuchField"] = {}
        code, said = judged()
        assert code != 0, said

    def test_the_pods_keep_what_the_chart_promises(self, helm: Path) -> None:
        found = rendered(helm, NEEDED)
        stateful = found["StatefulSet prod-logberg"]["spec"]
        pod = stateful["template"]["spec"]
        (container,) = pod["containers"]
        labels = stateful["template"]["metadata"]["labels"]
        selector = stateful["selector"]["matchLabels"]
        assert stateful["replicas"] == 3
        assert selector.items() <= labels.items()

        budget = found["PodDisruptionBudget prod-logberg"]["spec"]
        assert budget == {"maxUnavailable": 1, "selector": {"matchLabels": selector}}
        (apart,) = pod["affinity"]["podAntiAffinity"][
            "requiredDuringSchedulingIgnoredDuringExecution"
        ]
        assert apart["topologyKey"] == "kubernetes.io/hostname"
        assert apart["labelSelector"]["matchLabels"] == selector

        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] == 10001
        assert pod["automountServiceAccountToken"] is False
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        for name, path in (("startup", "live"), ("liveness", "live"), ("readiness", "ready")):
            asked = container[f"{name}Probe"]["httpGet"]
            assert asked == {"path": f"/health/{path}", "port": "https", "scheme": "HTTPS"}
        for selected in (found["Service prod-logberg"], found["Service prod-logberg-nodes"]):
            assert selected["spec"]["selector"].items() <= labels.items()
        nodes = found["Service prod-logberg-nodes"]["spec"]
        assert (nodes["clusterIP"], nodes["publishNotReadyAddresses"]) == ("None", True)
        assert stateful["serviceName"] == "prod-logberg-nodes"
        volumes = {each["name"] for each in pod["volumes"]}
        volumes |= {each["metadata"]["name"] for each in stateful["volumeClaimTemplates"]}
        assert {each["name"] for each in container["volumeMounts"]} == volumes

    @pytest.mark.parametrize("values", [NEEDED, FULL], ids=["least", "full"])
    def test_nothing_secret_is_in_clear(self, helm: Path, values: tuple[str, ...]) -> None:
        found = rendered(helm, values)
        assert not [name for name in found if name.startswith("Secret")]
        assert _SECRET.search(yaml.safe_dump_all(found.values())) is None
        pod = found["StatefulSet prod-logberg"]["spec"]["template"]["spec"]
        assert all("value" not in each for each in pod["containers"][0].get("env", ()))

    @pytest.mark.parametrize("values", [NEEDED, FULL], ids=["least", "full"])
    def test_the_file_that_a_pod_makes_is_a_controllers(
        self, helm: Path, values: tuple[str, ...], tmp_path: Path
    ) -> None:
        """The pod's own script runs, on folders of the test."""
        found = rendered(helm, values)
        pod = found["StatefulSet prod-logberg"]["spec"]["template"]["spec"]
        for kind in ("tls", "key", "config", "run"):
            (tmp_path / kind).mkdir()
        for name in ("controller-2.crt", "controller-2.key", "ca.crt"):
            (tmp_path / "tls" / name).write_text(name)
        (tmp_path / "key" / "cluster.key").write_text("key")
        config = found["ConfigMap prod-logberg"]["data"]["controller.toml"]
        (tmp_path / "config" / "controller.toml").write_text(config)
        script = pod["containers"][0]["command"][-1]
        assert script.rstrip().endswith(
            "exec logberg controller --config /run/logberg/controller.toml"
        )
        script = script.replace("/etc/logberg/", f"{tmp_path}/").replace("exec logberg", "true")
        script = script.replace("/run/logberg", str(tmp_path / "run"))
        done = subprocess.run(
            ["sh", "-euc", script],
            env={"HOSTNAME": "prod-logberg-1", "PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        made = tmp_path / "run" / "controller.toml"
        assert (tmp_path / "run" / "tls.key").stat().st_mode & 0o077 == 0
        said = tomllib.loads(made.read_text())
        assert said["node_id"] == 2
        assert (said["authorization"], said["super_users"]) == ("on", [PRINCIPAL])
        assert set(said) <= set(ControllerSettings.__struct_fields__)
        hosts = [each["http"] for each in said["controllers"]]
        count = 5 if values is FULL else 3
        assert hosts == [
            f"https://prod-logberg-{n}.prod-logberg-nodes.meta.svc.cluster.local:9191"
            for n in range(count)
        ]
        assert said.get("tokens", []) == (
            [{"principal": PRINCIPAL, "sha256": DIGEST}] if values is FULL else []
        )
