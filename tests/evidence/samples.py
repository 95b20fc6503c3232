"""Pieces for tests of the page, made up: none is ever kept as a run."""

from typing import Any

from tests.evidence.coverage_table import faults
from tests.evidence.pieces import Piece
from tests.simulation.coverage import CLUSTER_OPERATIONS

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def piece(what: str, figures: dict[str, Any], commit: str = COMMIT) -> Piece:
    return Piece(what, f"python -m tests.{what}", commit, "3.11.7", "2026-01-02", 90.0, figures)


def seeds(first: int, count: int = 1000, **more: Any) -> Piece:
    full = {fault: dict.fromkeys(CLUSTER_OPERATIONS, 1_234) for fault in faults({})}
    figures = {
        "simulator": "cluster",
        "kind": "drawn",
        "first": first,
        "count": count,
        "violations": 0,
        "failed": [],
        "simulated_s": 36_000.0,
        "events": 5_000_000,
        "checked": {"acknowledged": 40_000, "reads": 20_000, "lives": 900},
        "faults": {"kill": 500, "old_frames": 20},
        "coverage": full,
    }
    return piece("seeds", {**figures, **more})


def everything() -> list[Piece]:
    """One piece or two of each kind."""
    mutants = [
        {
            "name": "no fsync",
            "promise": "1, I5",
            "killed_by": "seed 7",
            "says": "I5: | x",
            "took_s": 2,
        },
        {
            "name": "clock read",
            "promise": "12, I13",
            "killed_by": "test t",
            "says": "",
            "took_s": 1,
        },
    ]
    kills = {
        "kills": 3,
        "by_kind": {"kill": 3, "paused": 1},
        "acknowledged": 900,
        "missing": 0,
        "doubled": 0,
        "fenced": 0,
        "samples_ms": [40.0, 60.0, 220.0],
        "paused_ms": [800.0],
    }
    model = {"spec": "Guard", "bounds": "3 nodes, 2 terms", "states": 1_000_000, "distinct": 90_000}
    model |= {"depth": 30, "invariants": ["OneLeader"]}
    model |= {"mutants_rejected": [{"name": "vote twice", "invariant": "OneLeader"}]}
    flips = {"file": "journal", "bytes": 100, "flips": 800, "silent": 0, "detected": 790}
    return [
        seeds(1),
        seeds(1001),
        piece(
            "crash points",
            {"role": "leader", "points": 700, "by_step": {"sync": 300}, "violations": 0},
        ),
        piece("power cuts", {"cuts": 10, "acknowledged": 500, "violations": 0}),
        piece("flips", {**flips, "harmless": 10, "how": {"refused to open": 790}}),
        piece("kills", kills),
        piece("mutants", {"mutants": mutants, "survivors": []}),
        piece("model", model),
        piece("replays", {"seeds": 60, "pythons": ["3.11.7"], "hash_seeds": ["0"], "different": 0}),
    ]
