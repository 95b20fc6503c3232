"""Targets: signed notes, keys, heads, tiles and proofs, from a server, a file or a witness."""

import base64
import json
from functools import cache

from audit.questions.batch_proofs import ProofRefusedError, check_proof, read_proof
from ledger.batch import HASH_BYTES, parse
from ledger.errors import LedgerError
from ledger.frame import CRC_BYTES
from ledger.merkle.frontier import Frontier
from ledger.merkle.hashing import leaf_hash
from ledger.merkle.heads import TreeHead, believed_head, origin_of
from ledger.merkle.notes import COSIGNATURE, NoteKey, SignedNote, SigningKey
from ledger.merkle.proofs import (
    prove_consistency,
    prove_inclusion,
    verify_consistency,
    verify_inclusion,
)
from ledger.merkle.submissions import Submission, SubmissionError, read_cosignatures
from ledger.merkle.tiles import TreeTile
from tests.fuzz.of_files import batch_seeds
from tests.fuzz.target import FuzzTarget
from verifier import logberg_proof

_CLUSTER = "a-cluster"
_ORIGIN = origin_of(_CLUSTER)
_SIGNERS = [SigningKey(_ORIGIN, bytes([n]) * 32) for n in (1, 2, 3)]
_KEYS = [one.public for one in _SIGNERS]
_WITNESS = SigningKey("a-witness", b"w" * 32, COSIGNATURE)
_SIZE, _OLD = 11, 5


def _leaf(number: int) -> bytes:
    return leaf_hash(number.to_bytes(HASH_BYTES, "big"))


def _root_of(first: int, count: int) -> bytes:
    frontier = Frontier()
    for number in range(first, first + count):
        frontier = frontier.append(_leaf(number))
    return frontier.root()


def _subtree(level: int, number: int) -> bytes:
    return _root_of(number << level, 1 << level)


def _note(head: TreeHead) -> bytes:
    signatures = tuple(one.sign(head.text) for one in _SIGNERS[:2])
    cosigned = _WITNESS.sign(head.text, 1_700_000_000)
    return SignedNote(head.text, (*signatures, cosigned)).encode().encode()


_HEAD = TreeHead(_ORIGIN, _SIZE, _root_of(0, _SIZE))


def _read_note(data: bytes) -> None:
    note = SignedNote.parse(data)
    assert note.encode().encode() == data
    note.signers([*_KEYS, _WITNESS.public])
    head = believed_head(note, _ORIGIN, _KEYS)
    assert head == _HEAD, "a head was believed that nobody signed"


def _read_text(data: bytes) -> None:
    """Keys, heads, frontiers and the paths of tiles: each has one form."""
    frontier, refused = None, 0
    try:
        frontier = Frontier.decode(data)
        assert frontier.encode() == data
        frontier.root()
    except LedgerError:
        refused += 1
    text = data.decode()
    for kind in (NoteKey, TreeHead, TreeTile):
        try:
            found = kind.parse(text)
        except LedgerError:
            refused += 1
            continue
        if isinstance(found, TreeHead):
            assert found.text == text
        elif isinstance(found, NoteKey):
            assert found.text == text.strip()
        else:
            assert found.path == text
            found.lies_in(_SIZE)
    if refused == 4:
        raise LedgerError("none of them")


def _text_seeds() -> list[bytes]:
    frontier = Frontier()
    for number in range(_SIZE):
        frontier = frontier.append(_leaf(number))
    tile = TreeTile(0, 1_234_567, 5)
    return [
        _KEYS[0].text.encode(),
        _WITNESS.public.text.encode(),
        _HEAD.text.encode(),
        frontier.encode(),
        tile.path.encode(),
    ]


def _read_path(data: bytes) -> None:
    """A proof whose hashes and numbers somebody chose holds only where the real one does."""
    index, size, old = data[:3].ljust(3, b"\0")
    body = data[3:]
    hashes = [body[at : at + HASH_BYTES] for at in range(0, len(body), HASH_BYTES)]
    refused = 0
    try:
        verify_inclusion(_leaf(index), index, size, _HEAD.root, hashes)
        # A path fits trees of several sizes. Signatures bind size and root together.
        assert size != _SIZE or tuple(hashes) == prove_inclusion(index, _SIZE, _subtree)
    except LedgerError:
        refused += 1
    try:
        verify_consistency(old, _root_of(0, old), size, _HEAD.root, hashes)
        assert size != _SIZE or tuple(hashes) == prove_consistency(old, _SIZE, _subtree)
    except LedgerError:
        refused += 1
    if refused == 2:
        raise LedgerError("neither holds")


def _path_seeds() -> list[bytes]:
    inclusion = prove_inclusion(3, _SIZE, _subtree)
    consistency = prove_consistency(_OLD, _SIZE, _subtree)
    return [
        bytes((3, _SIZE, 0)) + b"".join(inclusion),
        bytes((0, _SIZE, _OLD)) + b"".join(consistency),
    ]


def _read_proof(data: bytes) -> None:
    """Whatever the product or the verifier by another hand accepts says what is true.

    The verifier passes over a few things that prove nothing, such as a batch's CRC. So it accepts
    all that the product accepts.
    """
    refused = None
    try:
        ours = check_proof(read_proof(data), _KEYS)
        assert (ours.leaf, ours.batch.encoded) == (0, _batch())
        assert ours.batch.header.base_offset <= ours.offset < ours.batch.header.end_offset
    except ProofRefusedError as error:
        refused = error
    keys = [(key.name, key.public) for key in _KEYS]
    try:
        proof = logberg_proof.read_proof(data)
        logberg_proof.check(proof, keys)
    except (logberg_proof.RefusedError, logberg_proof.UnreadableError) as error:
        if refused is None:
            raise AssertionError(f"only the verifier refuses it: {error}") from error
        raise refused from None
    header = parse(_batch()).header
    assert type(proof["leafIndex"]) is type(proof["offset"]) is int
    assert proof["leafIndex"] == 0
    assert header.base_offset <= proof["offset"] < header.end_offset
    assert base64.b64decode(proof["batch"])[:-CRC_BYTES] == _batch()[:-CRC_BYTES]


def _batch() -> bytes:
    return batch_seeds()[0]


@cache
def _proof_seeds() -> list[bytes]:
    batch = parse(_batch())
    head = _note(TreeHead(_ORIGIN, 1, leaf_hash(batch.hash))).decode()
    proof = {
        "format": 1,
        "clusterId": _CLUSTER,
        "offset": batch.header.base_offset,
        "leafIndex": 0,
        "batch": base64.b64encode(batch.encoded).decode(),
        "inclusion": [],
        "head": head,
        "olderSize": 0,
        "consistency": [],
    }
    with_older = {**proof, "olderHead": head, "olderSize": 1}
    return [json.dumps(one).encode() for one in (proof, with_older)]


def _read_submission(data: bytes) -> None:
    """What a log sends to a witness, and what the witness answers."""
    refused = 0
    try:
        found = Submission.parse(data)
        assert Submission.parse(found.encode()) == found
        _ = found.origin
    except SubmissionError:
        refused += 1
    try:
        read_cosignatures(data)
    except SubmissionError:
        refused += 1
    if refused == 2:
        raise SubmissionError("neither")


def _submission_seeds() -> list[bytes]:
    proof = prove_consistency(_OLD, _SIZE, _subtree)
    answer = _WITNESS.sign(_HEAD.text, 1_700_000_000).line
    return [Submission(_OLD, proof, _note(_HEAD)).encode(), answer.encode()]


TARGETS = (
    FuzzTarget(
        "notes",
        "signed heads, from a controller, a witness or a file",
        _read_note,
        (LedgerError,),
        lambda: [_note(_HEAD)],
    ),
    FuzzTarget(
        "keys-heads-tiles",
        "keys, texts of heads, frontiers and paths of tiles",
        _read_text,
        (LedgerError, UnicodeDecodeError),
        _text_seeds,
    ),
    FuzzTarget(
        "tree-proofs",
        "proofs of inclusion and consistency, from a controller or a file",
        _read_path,
        (LedgerError,),
        _path_seeds,
    ),
    FuzzTarget(
        "submissions",
        "heads that a witness is asked to cosign, from anybody, and its answers",
        _read_submission,
        (SubmissionError,),
        _submission_seeds,
    ),
    FuzzTarget(
        "batch-proofs",
        "the file of `audit prove`, for both verifiers",
        _read_proof,
        (ProofRefusedError,),
        _proof_seeds,
    ),
)
