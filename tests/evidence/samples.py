"""Pieces for tests, made up: none is ever a record."""

from typing import Any

from tests.evidence.kinds import KINDS
from tests.evidence.pieces import Piece
from tests.simulation.coverage import CLUSTER_OPERATIONS, every_fault

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def piece(what: str, figures: dict[str, Any]) -> Piece:
    return Piece(what, f"python -m tests.{what}", COMMIT, "3.11.7", "2026-01-02", 90.0, figures)


def seeds(first: int, count: int = 1000, **more: Any) -> Piece:
    figures = {
        "simulator": "cluster",
        "kind": "drawn",
        "first": first,
        "count": count,
        "violations": 0,
        "failed": [],
        "simulated_s": 36_000.0,
        "checked": {"acknowledged": 40_000, "reads": 20_000, "restarts": 900},
        "faults": {"kill": 500, "old_frames": 20},
        "coverage": {fault: dict.fromkeys(CLUSTER_OPERATIONS, 7) for fault in every_fault({})},
    }
    return piece("seeds", {**figures, **more})


def kills(samples: list[float], **more: Any) -> Piece:
    figures = dict.fromkeys(("missing", "doubled", "misplaced", "fenced"), 0)
    figures |= {"kills": len(samples), "acknowledged": 900}
    lists = {"unsound": [], "samples_ms": samples, "paused_ms": [800.0], "second_ms": []}
    return piece("kills", {**figures, **lists, **more})


def mutants(*survivors: str) -> Piece:
    killed = [{"name": "a", "promise": "1, 12, I5"}, {"name": "b", "promise": "12, I13"}]
    return piece("mutants", {"mutants": killed, "survivors": list(survivors)})


def everything() -> list[Piece]:
    """One piece or two of each kind."""
    points = {"role": "leader", "points": 700, "by_step": {"sync": 300}, "violations": 0}
    flips = {"file": "journal", "bytes": 100, "flips": 800, "silent": 0, "detected": 790}
    model: dict[str, Any] = {"spec": "Guard", "states": 1_000_000, "depth": 30}
    model |= {"violated": [], "mutants_not_rejected": []}
    replays = {"seeds": 60, "pythons": ["3.11.7", "3.13.0"], "hash_seeds": ["0"], "different": 0}
    calm = {"acknowledged": 70, "reads": 9, "records": 200, "simulated_s": 3600.0}
    found = [
        *(seeds(1), seeds(1001), kills([40.0, 60.0, 220.0]), mutants()),
        piece("voter runs", {**kills([]).figures, "runs": 20, "samples_ms": [310.0, 640.0]}),
        piece("calm", dict.fromkeys(("elections", "fenced", "registrations"), 0) | calm),
        piece("crash points", points),
        piece("power cuts", {"cuts": 10, "acknowledged": 500, "violations": 0}),
        piece("flips", flips),
        piece("model", model),
        piece("replays", replays),
    ]
    assert {one.what for one in found} == set(KINDS) - {"coverage"}
    return found
