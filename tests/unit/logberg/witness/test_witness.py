"""A witness cosigns a log that only grows, and answers everything else as C2SP says."""

from pathlib import Path
from random import Random

import pytest

from ledger.merkle.hashing import EMPTY_ROOT
from ledger.merkle.heads import TreeHead
from ledger.merkle.notes import COSIGNATURE, NoteKey, SignedNote, SigningKey
from ledger.merkle.submissions import SIZE_TYPE, Submission, read_cosignatures, read_size
from logberg.witness.state import REFUSED_MAX, STATE, WitnessState, WitnessStateError
from logberg.witness.witness import Judgement, Outcome, Witness, WitnessedLog
from runtime.disk.real import RealDisk
from tests.unit.logberg.witness.submitting import KEYS, ORIGIN, SubmittingLog

WITNESS = SigningKey("witness.example/one", bytes((9,)) * 32, COSIGNATURE)
NOW_S = 1_800_000_000


class FailingDisk(RealDisk):
    """A disk that refuses to replace a file, when it is told to."""

    fails = False

    def replace(self, name: str, data: bytes) -> None:
        if self.fails:
            raise OSError(28, "no space left")
        super().replace(name, data)


def witness_in(folder: Path, needed: int = 2, **keys) -> tuple[Witness, WitnessState, FailingDisk]:
    disk = FailingDisk(folder)
    disk.make_folder("")
    WitnessState.begin(disk)
    state = WitnessState(disk)
    state.open(WITNESS.public)
    known = keys.get("known", tuple(key.public for key in KEYS))
    log = WitnessedLog(ORIGIN, known, needed)
    return Witness(WITNESS, [log], state, lambda: NOW_S), state, disk


def cosigned(judged: Judgement, head: TreeHead) -> None:
    assert judged.status == 200, judged
    (one,) = read_cosignatures(judged.body)
    assert (one.name, one.key_id) == (WITNESS.public.name, WITNESS.public.id)
    assert WITNESS.public.verifies(head.text, one.signature)
    assert int.from_bytes(one.signature[:8], "big") == NOW_S


def test_a_log_that_grows_is_cosigned_at_every_size(tmp_path: Path) -> None:
    witness, state, _ = witness_in(tmp_path)
    log = SubmittingLog()
    old = 0
    for size in (1, 1, 2, 5, 5, 255, 256, 257, 400):
        cosigned(witness.add(log.submission(old, size)), log.head(size))
        old = size
    kept = SignedNote.parse(state.newest(ORIGIN).note.encode())
    assert kept.signers([WITNESS.public]) == (WITNESS.public,)
    assert len(kept.signers([key.public for key in KEYS])) == 2


def test_each_refusal_of_the_protocol(tmp_path: Path) -> None:
    witness, state, _ = witness_in(tmp_path)
    log, other = SubmittingLog(), SubmittingLog(seed=2)
    cosigned(witness.add(log.submission(0, 100)), log.head(100))
    before = state.newest(ORIGIN)
    stranger = SigningKey(ORIGIN, bytes((7,)) * 32)
    foreign = TreeHead("logberg/other", 3, bytes(32))
    spoilt = bytearray(log.submission(100, 200))
    spoilt[-20] ^= 1
    for body, outcome in (
        # It can't be read.
        (b"", Outcome.MALFORMED),
        (b"old 100\n", Outcome.MALFORMED),
        (log.submission(100, 200).replace(b"old 100", b"old 0100"), Outcome.MALFORMED),
        (log.submission(100, 200).replace(b"old 100", b"old -100"), Outcome.MALFORMED),
        (log.submission(100, 200).replace(b"old 100", b"old\t100"), Outcome.MALFORMED),
        (log.submission(100, 200).replace(b"old 100", b"new 100"), Outcome.MALFORMED),
        (log.submission(100, 200).replace(b"\n\n", b"\nAAAA\n\n", 1), Outcome.MALFORMED),
        (log.submission(100, 200).replace(b"\n", b"\r\n"), Outcome.MALFORMED),
        (Submission(100, (bytes(32),) * 64, log.note(200)).encode(), Outcome.MALFORMED),
        # The old size is above the new one.
        (Submission(201, (), log.note(200)).encode(), Outcome.MALFORMED),
        # Another log.
        (Submission(0, (), foreign.text.encode() + b"\n").encode(), Outcome.UNKNOWN_LOG),
        # Signatures.
        (log.submission(100, 200, KEYS[:1]), Outcome.NOT_SIGNED),
        (log.submission(100, 200, [stranger, KEYS[0]]), Outcome.NOT_SIGNED),
        (log.submission(100, 200, [stranger]), Outcome.NOT_SIGNED),
        (bytes(spoilt), Outcome.NOT_SIGNED),
        # Not the size that was cosigned last.
        (log.submission(0, 200), Outcome.CONFLICT),
        (log.submission(99, 200), Outcome.CONFLICT),
        (log.submission(150, 200), Outcome.CONFLICT),
        (log.submission(0, 50), Outcome.CONFLICT),
        # Another history.
        (other.submission(100, 200), Outcome.CONTRADICTS),
        (other.submission(100, 100), Outcome.CONTRADICTS),
        (Submission(100, (), log.note(200)).encode(), Outcome.CONTRADICTS),
        (Submission(100, log.proof(100, 200)[:-1], log.note(200)).encode(), Outcome.CONTRADICTS),
        (Submission(100, log.proof(100, 200)[:1] * 3, log.note(200)).encode(), Outcome.CONTRADICTS),
        (Submission(100, log.proof(60, 200), log.note(200)).encode(), Outcome.CONTRADICTS),
    ):
        judged = witness.add(body)
        assert judged.outcome is outcome, (body, judged)
        assert b"\xe2\x80\x94" not in judged.body, "a signature in an answer that refuses"
        if outcome is Outcome.CONFLICT:
            assert (judged.content_type, read_size(judged.body)) == (SIZE_TYPE, 100)
        if outcome is Outcome.CONTRADICTS:
            kept = Submission.parse((tmp_path / judged.evidence).read_bytes())
            assert kept.note == Submission.parse(body).note
    assert state.newest(ORIGIN) == before
    cosigned(witness.add(log.submission(100, 200)), log.head(200))


def test_junk_beside_a_right_head_is_one_file_and_only_until_the_head_is_cosigned(
    tmp_path: Path,
) -> None:
    """Else strangers fill the folder, and the evidence of a forgery finds no room."""
    witness, _, _ = witness_in(tmp_path)
    log, other = SubmittingLog(), SubmittingLog(seed=2)
    witness.add(log.submission(0, 100))
    folder = tmp_path / "refused"
    for number in range(1, REFUSED_MAX + 2):
        junk = Submission(100, (bytes((number,)) * 32,), log.note(200)).encode()
        assert witness.add(junk).outcome is Outcome.CONTRADICTS
    assert len([*folder.iterdir()]) == 1
    forged = witness.add(other.submission(100, 200))
    cosigned(witness.add(log.submission(100, 200)), log.head(200))
    assert [path.name for path in folder.iterdir()] == [Path(forged.evidence).name]


def test_the_first_head_needs_no_proof_and_takes_none(tmp_path: Path) -> None:
    witness, _, _ = witness_in(tmp_path)
    log = SubmittingLog()
    judged = witness.add(Submission(0, (bytes(32),), log.note(3)).encode())
    assert judged.outcome is Outcome.CONTRADICTS
    empty = TreeHead(ORIGIN, 0, bytes(32))
    note = SignedNote(empty.text, tuple(key.sign(empty.text) for key in KEYS)).encode().encode()
    assert witness.add(Submission(0, (), note).encode()).outcome is Outcome.CONTRADICTS
    empty = TreeHead(ORIGIN, 0, EMPTY_ROOT)
    note = SignedNote(empty.text, tuple(key.sign(empty.text) for key in KEYS)).encode().encode()
    cosigned(witness.add(Submission(0, (), note).encode()), empty)
    cosigned(witness.add(log.submission(0, 3)), log.head(3))


def test_a_history_that_parts_late_is_refused_wherever_it_parts(tmp_path: Path) -> None:
    log = SubmittingLog()
    dice = Random(3)
    for number in range(60):
        witness, _, _ = witness_in(tmp_path / str(number))
        old = dice.randrange(1, 300)
        size = dice.randrange(old, 400)
        until = dice.randrange(old)
        witness.add(log.submission(0, old))
        forged = SubmittingLog(seed=number + 10, same=log, until=until)
        assert witness.add(forged.submission(old, size)).outcome is Outcome.CONTRADICTS


def test_what_was_cosigned_is_known_after_a_restart(tmp_path: Path) -> None:
    witness, _, _ = witness_in(tmp_path)
    log = SubmittingLog()
    witness.add(log.submission(0, 100))
    again, _, _ = witness_in(tmp_path)
    assert read_size(again.add(log.submission(0, 100)).body) == 100
    assert again.add(SubmittingLog(seed=2).submission(100, 200)).status == 422
    cosigned(again.add(log.submission(100, 200)), log.head(200))


def test_what_cannot_be_made_durable_is_not_cosigned(tmp_path: Path) -> None:
    witness, _, disk = witness_in(tmp_path)
    log = SubmittingLog()
    disk.fails = True
    with pytest.raises(OSError, match="no space"):
        witness.add(log.submission(0, 100))
    disk.fails = False
    assert read_size(witness.add(log.submission(100, 200)).body) == 0
    cosigned(witness.add(log.submission(0, 50)), log.head(50))


@pytest.mark.parametrize("how", ["gone", "cut", "flipped", "other key"])
def test_a_witness_that_forgot_does_not_start(tmp_path: Path, how: str) -> None:
    witness, _, disk = witness_in(tmp_path)
    witness.add(SubmittingLog().submission(0, 100))
    data = bytearray(disk.read(STATE))
    own = WITNESS.public
    match how:
        case "gone":
            disk.unlink(STATE)
        case "cut":
            disk.replace(STATE, bytes(data[:-30]))
        case "flipped":
            at = data.index(b"\\n100\\n") + 2
            data[at] = ord("2")
            disk.replace(STATE, bytes(data))
        case _:
            own = NoteKey("witness.example/one", bytes((8,)) * 32, COSIGNATURE)
    with pytest.raises(WitnessStateError):
        WitnessState(disk).open(own)
