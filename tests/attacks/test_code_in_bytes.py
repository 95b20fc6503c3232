"""Bytes never run code: no parser unpickles, and nothing that could is imported."""

import ast
import json
import marshal
import pickle
from pathlib import Path
from typing import Any

import pytest

from runtime.links.frames import framed
from tests.docs.source import ROOT
from tests.fuzz.table import TARGETS
from tests.fuzz.target import FuzzTarget
from tests.packaging.alien import WHEEL

RUNS_ITS_INPUT = {"pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle", "jsonpickle"}


class Intruder:
    """Touches a file when it is unpickled."""

    def __init__(self, trace: Path) -> None:
        self._trace = trace

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self._trace,)


def payloads(trace: Path) -> list[bytes]:
    pickled = [pickle.dumps(Intruder(trace), protocol) for protocol in (0, 2, 5)]
    code = compile(f"open({str(trace)!r}, 'w')", "intruder", "exec")
    yaml = f"!!python/object/apply:pathlib.Path.touch [{trace}]\n".encode()
    by_name = json.dumps({"py/reduce": ["pathlib.Path.touch", str(trace)]}).encode()
    return [*pickled, marshal.dumps(code), yaml, by_name]


def test_the_payload_would_run(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    pickle.loads(payloads(trace)[1])
    assert trace.exists()


@pytest.mark.parametrize("target", TARGETS.values(), ids=list(TARGETS))
def test_no_parser_runs_what_it_reads(target: FuzzTarget, tmp_path: Path) -> None:
    """As they are, as a frame of a link, behind a length, and within a seed."""
    trace = tmp_path / "trace"
    for payload in payloads(trace):
        for seed in target.seeds()[:4]:
            half = len(seed) // 2
            target.feed(seed[:half] + payload + seed[half:])
        for data in (payload, framed(payload), len(payload).to_bytes(4, "big") + payload):
            target.feed(data)
    assert not trace.exists()


def test_nothing_that_runs_its_input_is_imported() -> None:
    found = []
    for package in WHEEL["only-include"]:
        for file in (ROOT / package).rglob("*.py"):
            if file.is_relative_to(ROOT / "coordination" / "testing"):
                continue  # a suite for tests; it pickles errors of its own
            for node in ast.walk(ast.parse(file.read_text())):
                names: list[str] = []
                if isinstance(node, ast.Import):
                    names = [alias.name for alias in node.names]
                elif isinstance(node, ast.ImportFrom):
                    names = [node.module or ""]
                elif isinstance(node, ast.Attribute) and node.attr in {
                    "unsafe_load",
                    "full_load",
                    "UnsafeLoader",
                    "FullLoader",
                }:
                    names = ["shelve"]
                if {name.partition(".")[0] for name in names} & RUNS_ITS_INPUT:
                    found.append(f"{file.relative_to(ROOT)}: {ast.unparse(node)}")
    assert found == []
