"""`logberg audit report` on real folders: sound, damaged, diverged, cut to a time."""

import base64
import json
import re
import shutil
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

pytest.importorskip("jinja2", reason="the report is written by jinja2: logberg[audit]")

from audit.embedded import run_job
from audit.generated import GeneratedHistory, write_history
from audit.places.replicas import open_replicas
from audit.reading.feed import Feed
from audit.report.words import number
from ledger.batch import Batch
from logberg.commands.audit.report import FILE, command

pytestmark = pytest.mark.slow


RULES = """
[topics_made]
severity = "critical"
kinds = ["topic_created"]
gather = "30d"
sentence = "Somebody made a topic, and the user has a rule for it."
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> GeneratedHistory:
    """Two days of three replicas."""
    return write_history(
        tmp_path_factory.mktemp("made"), days=2, seed=3, replicas=3, segment_bytes=262_144
    )


@pytest.fixture
def history(made: GeneratedHistory, tmp_path: Path) -> Path:
    """A copy that may be damaged."""
    return shutil.copytree(made.folder, tmp_path / "history")


def report(where: Path, out: Path, *more: str) -> Result:
    return CliRunner().invoke(
        command, [str(where), "--out", str(out), *more], catch_exceptions=False
    )


def words(out: Path) -> str:
    text = (out / FILE).read_text(encoding="utf-8")
    text = re.sub(r"<(script|style)>.*?</\1>", "", text, flags=re.DOTALL)
    return re.sub(r"[ \n]+", " ", re.sub(r"<[^>]+>", " ", text))


def segments(node: Path) -> list[Path]:
    return sorted((node / "log").glob("*.log"))


def flip(file: Path, at: int) -> None:
    held = bytearray(file.read_bytes())
    held[at] ^= 0xFF
    file.write_bytes(held)


def test_a_sound_history(made: GeneratedHistory, tmp_path: Path) -> None:
    done = report(made.folder, tmp_path / "out", "--output", "json", "--title", "Two days & more")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["ok"] is True
    assert told["head"] == f"{made.log_end}:{made.head.hex()}"
    assert told["bytes"] == (tmp_path / "out" / FILE).stat().st_size
    said = words(tmp_path / "out")
    assert "Two days &amp; more" in said
    assert "Sound: 3 replicas, one history" in said
    assert told["head"] in said
    privileged = run_job("privileged", open_replicas(str(made.folder)))
    assert f"{number(len(privileged))} privileged changes" in said


def test_the_history_is_read_once(
    made: GeneratedHistory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = []
    batches = Feed.batches

    def counted(feed: Feed, start: int | None = None) -> Iterator[Batch]:
        reads.append(start)
        return batches(feed, start)

    monkeypatch.setattr(Feed, "batches", counted)
    assert report(made.folder, tmp_path).exit_code == 0
    assert reads == [None], "the sections and the findings share one reading"


def test_it_says_where_the_page_is_and_what_to_write_down(
    made: GeneratedHistory, tmp_path: Path
) -> None:
    done = report(made.folder / "controller-1", tmp_path / "a" / "b")
    assert done.exit_code == 0
    assert str(tmp_path / "a" / "b" / FILE) in done.output
    assert f"{made.log_end}:{made.head.hex()}" in done.output
    assert "one replica was given" in words(tmp_path / "a" / "b")


def test_one_damaged_replica_is_named_and_the_others_tell(history: Path, tmp_path: Path) -> None:
    file = segments(history / "controller-2")[0]
    flip(file, file.stat().st_size // 2)
    done = report(history, tmp_path, "--output", "json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["ok"] is False
    assert told["head"] is not None
    said = words(tmp_path)
    assert "Damaged: controller-2" in said
    assert file.name in said
    assert "1 replica damaged. The history is that of the others." in said


def test_all_damaged_the_page_ends_before_the_last_first_bad_place(
    history: Path, tmp_path: Path
) -> None:
    for place, node in enumerate(sorted(history.glob("controller-*")), 1):
        file = segments(node)[0]
        flip(file, file.stat().st_size * place // 4)
    done = report(history, tmp_path, "--output", "json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["head"] is None
    said = words(tmp_path)
    assert "Damaged: controller-1, controller-2 and controller-3" in said
    assert "controller-3" in told["notes"][0]
    assert told["endOffset"] > 0
    assert "there is none to write down" in said


def test_a_head_that_was_written_down_is_looked_for(
    made: GeneratedHistory, history: Path, tmp_path: Path
) -> None:
    head = f"{made.log_end}:{made.head.hex()}"
    assert report(history, tmp_path, "--head", head).exit_code == 0
    assert "1 head written down earlier was looked for in every log, and found" in words(tmp_path)
    for node in history.glob("controller-*"):
        (node / "manifest").unlink()
        shutil.rmtree(node / "checkpoints")
        segments(node)[-1].unlink()
    told = json.loads(report(history, tmp_path, "--output", "json").stdout)
    assert told["ok"], "a tail that is cut off is not missed without a head"
    done = report(history, tmp_path, "--head", head, "--output", "json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["ok"] is False
    said = words(tmp_path)
    assert "Damaged: controller-1, controller-2 and controller-3" in said
    assert "and found there" not in said


def test_a_damaged_snapshot_is_found_and_the_log_still_tells(history: Path, tmp_path: Path) -> None:
    file = min((history / "controller-1" / "checkpoints").glob("*.checkpoint"))
    flip(file, file.stat().st_size // 2)
    done = report(history, tmp_path, "--output", "json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert (told["ok"], told["notes"]) == (False, [])
    assert told["head"] is not None
    assert file.name in words(tmp_path)


def test_replicas_that_differ(history: Path, tmp_path: Path) -> None:
    other = write_history(tmp_path / "other", days=2, seed=4, segment_bytes=262_144)
    shutil.rmtree(history / "controller-3")
    shutil.copytree(other.nodes[0], history / "controller-3")
    done = report(history, tmp_path, "--output", "json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["head"] is None
    said = words(tmp_path)
    assert "The replicas differ" in said
    assert "controller-3 differs from the others at offset 0" in said


def test_from_and_to_cut_the_history(made: GeneratedHistory, tmp_path: Path) -> None:
    whole = json.loads(report(made.folder, tmp_path, "--output", "json").stdout)
    cut = json.loads(
        report(made.folder, tmp_path, "--from", "-1d", "--to", "-1h", "--output", "json").stdout
    )
    assert whole["fromMs"] < cut["fromMs"] < cut["untilMs"] < whole["untilMs"]
    assert cut["fromMs"] % 86_400_000 == 0, "it begins with a day"
    assert cut["endOffset"] < whole["endOffset"]
    assert cut["head"] == whole["head"], "the certificate is about the whole log"
    assert f"Up to offset {number(cut['endOffset'])}" in words(tmp_path)


def test_the_timelines_that_were_asked_for_come_first(
    made: GeneratedHistory, tmp_path: Path
) -> None:
    done = report(made.folder, tmp_path, "--timeline", "broker:2", "--timeline", "broker:1")
    assert done.exit_code == 0, done.output
    (data,) = re.findall(r'id="data">([^<]+)<', (tmp_path / FILE).read_text(encoding="utf-8"))
    asked = json.loads(zlib.decompress(base64.b64decode(data)))["asked"]
    assert asked == ["broker:2", "broker:1"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--timeline", "no-such-3"], "--timeline: nothing named 'no-such-3' changed"),
        (["--to", "yesterday"], "yesterday"),
        (["--to", "999999999"], "the log ends at"),
        (["--head", "12:abc"], "64 hexadecimal digits"),
    ],
)
def test_moments_that_are_none(
    made: GeneratedHistory, tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    done = report(made.folder, tmp_path, *arguments)
    assert done.exit_code in {1, 2}
    assert sentence in done.output
    assert not (tmp_path / FILE).exists()


def test_no_log_there(tmp_path: Path) -> None:
    done = report(tmp_path, tmp_path / "out")
    assert done.exit_code == 1
    assert "holds no log" in done.output


def test_a_folder_that_cannot_be_written(made: GeneratedHistory, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = report(made.folder, tmp_path / "file" / "out")
    assert done.exit_code == 1
    assert "file" in done.output


def test_without_the_library_it_says_what_to_install(
    made: GeneratedHistory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    monkeypatch.delitem(sys.modules, "audit.report.page", raising=False)
    done = report(made.folder, tmp_path)
    assert done.exit_code == 1
    assert "Install logberg[audit]" in done.output


def test_the_user_s_rules_make_findings_too(made: GeneratedHistory, tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text(RULES)
    done = report(made.folder, tmp_path / "out", "--rules", str(rules))
    assert done.exit_code == 0, done.output
    assert "Somebody made a topic, and the user has a rule for it." in words(tmp_path / "out")
    rules.write_text("[no_rule]\nseverity = 'dreadful'\n")
    refused = report(made.folder, tmp_path / "none", "--rules", str(rules))
    assert refused.exit_code == 1
    assert str(rules) in refused.output
    assert not (tmp_path / "none").exists()
