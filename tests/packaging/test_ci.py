"""CI and the hooks before a commit run what the Makefile runs, on the supported Pythons."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
MAKEFILE = (ROOT / "Makefile").read_text()
WORKFLOW: dict[str, Any] = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
HOOKS: dict[str, Any] = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
STEPS = [(name, step) for name, job in WORKFLOW["jobs"].items() for step in job["steps"]]


def recipe(task: str) -> str:
    """The commands of a task, without its prerequisites."""
    found = re.search(rf"^{task}:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    assert found is not None, f"the Makefile has no task {task}"
    return found[1]


COMMANDS = [step["run"] for _, step in STEPS if "run" in step]
INSTALL = "sudo apt-get "
"""So begins a step that installs what a task needs."""


@pytest.mark.parametrize("command", [one for one in COMMANDS if not one.startswith(INSTALL)])
def test_a_step_is_a_task_of_the_makefile(command: str) -> None:
    make, task = command.split()
    assert make == "make"
    assert recipe(task)


@pytest.mark.parametrize("action", [step["uses"] for _, step in STEPS if "uses" in step])
def test_an_action_is_pinned_by_its_major_version(action: str) -> None:
    assert re.fullmatch(r"[\w-]+/[\w-]+@v\d+", action)


def test_unit_tests_run_on_each_supported_python() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pythons = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    matrix = WORKFLOW["jobs"]["unit"]["strategy"]["matrix"]
    assert set(matrix["python"]) == set(pythons)


@pytest.mark.parametrize("hook", HOOKS["repos"][0]["hooks"], ids=lambda hook: hook["id"])
def test_a_hook_is_part_of_make_check(hook: dict[str, Any]) -> None:
    tool = hook["entry"].split()[0].removeprefix(".venv/bin/")
    assert f"$(BIN)/{tool}" in recipe("check")
