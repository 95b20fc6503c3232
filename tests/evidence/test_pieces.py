"""Pieces are written, read and added up, and nothing is counted twice or of a dirty tree unseen."""

import sys
from pathlib import Path

import pytest

from tests.evidence import pieces
from tests.evidence.pieces import PieceError, added, read_piece, read_pieces, write_piece


def seeds(first: int, count: int = 10, **more: object) -> dict[str, object]:
    return {
        "simulator": "cluster",
        "kind": "full",
        "first": first,
        "count": count,
        "violations": 0,
        **more,
    }


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = write_piece(tmp_path, "seeds", seeds(1, failed=["make seed SEED=3"]), 12.34)
    (piece,) = read_pieces(tmp_path)
    assert piece.figures == seeds(1, failed=["make seed SEED=3"])
    assert piece.took_s == 12.3
    assert len(piece.commit.removesuffix("+dirty")) == 40
    assert path.name == f"seeds-cluster-full-{piece.commit[:7]}-1.json"
    assert piece.kind == "cluster full"
    assert piece.python == ".".join(map(str, sys.version_info[:3]))


def test_a_file_never_replaces_another(tmp_path: Path) -> None:
    cuts = {"cuts": 2, "acknowledged": 7, "violations": 0}
    written = {write_piece(tmp_path, "power cuts", cuts, 1.0) for _ in range(3)}
    assert len(written) == len(read_pieces(tmp_path)) == 3


def test_tables_add_up_and_lists_are_joined(tmp_path: Path) -> None:
    for first, fault in ((1, {"kill": {"create": 1}}), (11, {"kill": {"create": 2, "read": 1}})):
        write_piece(tmp_path, "seeds", seeds(first, coverage=fault, failed=[f"seed {first}"]), 1.0)
    total = added(read_pieces(tmp_path))
    assert total["coverage"] == {"kill": {"create": 3, "read": 1}}
    assert sorted(total["failed"]) == ["seed 1", "seed 11"]
    assert total["count"] == 20
    assert not {"first", "simulator"} & set(total)


def test_a_seed_counts_once(tmp_path: Path) -> None:
    write_piece(tmp_path, "seeds", seeds(1), 1.0)
    write_piece(tmp_path, "seeds", seeds(11), 1.0)
    write_piece(tmp_path, "seeds", {**seeds(5), "kind": "lag"}, 1.0)
    assert len(read_pieces(tmp_path)) == 3
    write_piece(tmp_path, "seeds", seeds(20), 1.0)
    with pytest.raises(PieceError, match="seeds 20 to 20 of cluster full would count twice"):
        read_pieces(tmp_path)


def test_the_same_points_flips_and_models_count_once(tmp_path: Path) -> None:
    points = {"role": "leader", "points": 7, "violations": 0}
    write_piece(tmp_path / "a", "crash points", points, 1.0)
    write_piece(tmp_path / "a", "crash points", {**points, "role": "follower"}, 1.0)
    assert added(read_pieces(tmp_path / "a"))["points"] == 14
    write_piece(tmp_path / "a", "crash points", points, 1.0)
    flips = {"file": "journal", "bytes": 1, "flips": 8, "silent": 0}
    for folder in ("b", "b"):
        write_piece(tmp_path / folder, "flips", flips, 1.0, "python -m x")
    write_piece(tmp_path / "c", "flips", flips, 1.0, "python -m x --seed 1")
    write_piece(tmp_path / "c", "flips", flips, 1.0, "python -m x --seed 2")
    assert len(read_pieces(tmp_path / "c")) == 2
    for folder in ("a", "b"):
        with pytest.raises(PieceError, match="would count twice"):
            read_pieces(tmp_path / folder)


def test_what_is_no_piece_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PieceError, match="evidence of 'luck'"):
        write_piece(tmp_path, "luck", {}, 1.0)
    path = write_piece(tmp_path, "flips", {"file": "journal", "bytes": 1, "flips": 8}, 1.0)
    with pytest.raises(PieceError, match="no figure of silent"):
        read_pieces(tmp_path)
    path.write_text("{")
    with pytest.raises(PieceError, match="no piece"):
        read_pieces(tmp_path)


def test_a_command_names_no_place_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        sys,
        "argv",
        ["x", "--count", "3", "--record", str(tmp_path), "--folder=/tmp/f", "--role", "a leader"],
    )
    write_piece(tmp_path, "power cuts", {"cuts": 2, "acknowledged": 7, "violations": 0}, 1.0)
    (piece,) = read_pieces(tmp_path)
    assert piece.command.endswith(" --count 3 --role 'a leader'")
    assert "/" not in piece.command


def test_a_changed_tree_is_dirty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "ROOT", tmp_path)
    for arguments in (
        ("init", "--quiet"),
        ("config", "user.name", "A Test"),
        ("config", "user.email", "test@example.org"),
        ("commit", "--quiet", "--allow-empty", "-m", "first"),
    ):
        pieces._git(*arguments)
    began = pieces.own_commit()
    assert len(began) == 40
    monkeypatch.setattr(pieces, "_BEGAN", began)
    runs = tmp_path / ".git" / "runs"
    cuts = {"cuts": 2, "acknowledged": 7, "violations": 0}
    write_piece(runs, "power cuts", cuts, 1.0)
    write_piece(runs, "power cuts", cuts, 1.0)
    assert [piece.commit for piece in read_pieces(runs)] == [began, began]
    made = tmp_path / "tests" / "evidence" / "recorded.csv"
    made.parent.mkdir(parents=True)
    made.write_text("")
    assert pieces.own_commit() == began
    (tmp_path / "new.py").write_text("")
    assert pieces.own_commit() == f"{began}+dirty"
    assert read_piece(write_piece(runs, "power cuts", cuts, 1.0)).commit == f"{began}+dirty"


def test_without_git_a_piece_is_dirty(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert pieces.own_commit() == "unknown+dirty"


def test_a_tree_that_moved_meanwhile_is_dirty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces, "own_commit", lambda: "b" * 40)
    monkeypatch.setattr(pieces, "_BEGAN", "a" * 40)
    cuts = {"cuts": 2, "acknowledged": 7, "violations": 0}
    assert read_piece(write_piece(tmp_path, "power cuts", cuts, 1.0)).commit == "a" * 40 + "+dirty"
