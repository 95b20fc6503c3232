"""The checker of batch proofs, loaded from its file: it belongs to no package."""

import importlib.util
from pathlib import Path
from typing import Any

CHECKER = Path(__file__).parents[2] / "verifier" / "logberg_proof.py"


def checker() -> Any:
    """The module."""
    spec = importlib.util.spec_from_file_location("logberg_proof", CHECKER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
