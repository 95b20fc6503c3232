"""Batch proofs that dice draw, and every way to spoil one."""

import base64
from random import Random
from typing import Any

import msgspec

from ledger.batch import BatchHeader, Provenance, seal
from ledger.chain import LogMark
from ledger.merkle.heads import TreeHead, origin_of
from ledger.merkle.notes import SignedNote, SigningKey
from metadata.messages import BATCH_PROOF_FORMAT, BatchProofReply
from tests.oracles.transparency.drawn_trees import DrawnTree

CLUSTER = "4L6g3nShT-eMCtK--X86sw"
ORIGIN = origin_of(CLUSTER)
SIGNERS = [SigningKey(ORIGIN, bytes((number,)) * 32) for number in range(3)]
KEYS = [signer.public for signer in SIGNERS]

Proof = dict[str, Any]


def drawn_log(random: Random, size: int) -> tuple[DrawnTree, list[bytes]]:
    """A chain of batches of one record each, and the tree over it."""
    mark = LogMark.beginning(CLUSTER)
    leaves, encoded = [], []
    for _ in range(size):
        who = Provenance(principal="User:alice", operation="CreateTopics", reason="because")
        header = BatchHeader(mark.log_end, 1, 1, mark.timestamp_ms + 1, who, mark.head)
        batch = seal(header, b"\x91" + bytes((random.randrange(128),)))
        mark = mark.after(batch)
        leaves.append(batch.hash)
        encoded.append(batch.encoded)
    return DrawnTree(leaves), encoded


def signed_head(tree: DrawnTree, size: int) -> str:
    """The head of a tree's first batches, signed by the smallest majority."""
    head = TreeHead(ORIGIN, size, tree.roots[size])
    return SignedNote(head.text, tuple(one.sign(head.text) for one in SIGNERS[1:])).encode()


def proof_of(tree: DrawnTree, encoded: list[bytes], index: int, size: int, old: int) -> Proof:
    """A proof as it lies in its file; `old` 0: without an older head."""
    reply = BatchProofReply(
        BATCH_PROOF_FORMAT,
        CLUSTER,
        index,
        index,
        encoded[index],
        tuple(tree.inclusion(index, size)["proof"]),
        signed_head(tree, size),
        old,
        tuple(tree.consistency(old, size)["proof"]) if old else (),
        signed_head(tree, old) if old else "",
    )
    proof: Proof = msgspec.json.decode(msgspec.json.encode(reply))
    return proof


def spoil(random: Random, proof: Proof) -> tuple[str, Proof]:
    """Change one thing; returns what, and the proof that isn't right any more."""
    bad = dict(proof)
    name = random.choice([name for name, value in proof.items() if value not in ([], "")])
    value = bad[name]
    if isinstance(value, int):
        bad[name] = value + random.choice((-1, 1)) * random.randrange(1, 9)
    elif isinstance(value, list):
        bad[name] = _spoilt_list(random, value)
    elif name == "batch":
        # The CRC proves nothing: no hash covers it.
        data = base64.b64decode(value)
        bad[name] = base64.b64encode(_flip(random, data[:-4]) + data[-4:]).decode()
    else:
        bad[name] = _spoilt_text(random, value)
    return name, bad


def _spoilt_list(random: Random, values: list[str]) -> list[str]:
    at = random.randrange(len(values))
    match random.randrange(3):
        case 0:
            return values[:at] + values[at + 1 :]
        case 1:
            return [*values[:at], values[at], *values[at:]]
        case _:
            flipped = base64.b64encode(_flip(random, base64.b64decode(values[at]))).decode()
            return [*values[:at], flipped, *values[at + 1 :]]


def _spoilt_text(random: Random, text: str) -> str:
    at = random.randrange(len(text))
    other = chr(ord(text[at]) ^ 1 << random.randrange(5))
    return text[:at] + other + text[at + 1 :]


def _flip(random: Random, data: bytes) -> bytes:
    at = random.randrange(len(data))
    return data[:at] + bytes((data[at] ^ 1 << random.randrange(8),)) + data[at + 1 :]
