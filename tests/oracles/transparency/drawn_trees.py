"""Trees that dice draw, with tiles, proofs and heads, as questions to a judge; and spoiled ones."""

from collections.abc import Iterator
from random import Random
from typing import Any

from ledger.merkle.frontier import Frontier
from ledger.merkle.hashing import leaf_hash
from ledger.merkle.heads import TreeHead, origin_of
from ledger.merkle.notes import SignedNote, SigningKey
from ledger.merkle.proofs import prove_consistency, prove_inclusion
from ledger.merkle.tiles import subtrees_of, tiles_of

Question = dict[str, Any]


class DrawnTree:
    """A tree, and its rows of hashes as tiles hold them."""

    def __init__(self, leaves: list[bytes]) -> None:
        self.leaves = leaves
        self.frontier = Frontier()
        self.roots = [self.frontier.root()]
        for data in leaves:
            self.frontier = self.frontier.append(leaf_hash(data))
            self.roots.append(self.frontier.root())
        self.rows = [[leaf_hash(data) for data in leaves]]
        while len(self.rows[-1]) >= 256:
            below, row = self.rows[-1], []
            for at in range(0, len(below) - 255, 256):
                one = Frontier()
                for found in below[at : at + 256]:
                    one = one.append(found)
                row.append(one.root())
            self.rows.append(row)
        self.subtree = subtrees_of(
            lambda level, first, count: b"".join(self.rows[level][first : first + count])
        )

    @property
    def size(self) -> int:
        return len(self.leaves)

    def question(self) -> Question:
        tiles = {
            tile.path: b"".join(
                self.rows[tile.level][tile.number * 256 : tile.number * 256 + tile.width]
            )
            for tile in tiles_of(self.size)
        }
        root = self.frontier.root()
        return {"kind": "tree", "leaves": self.leaves, "tiles": tiles, "root": root}

    def inclusion(self, index: int, size: int) -> Question:
        return {
            "kind": "inclusion",
            "index": index,
            "size": size,
            "leaf": self.leaves[index],
            "root": self.roots[size],
            "proof": list(prove_inclusion(index, size, self.subtree)),
        }

    def consistency(self, old: int, size: int) -> Question:
        return {
            "kind": "consistency",
            "old": old,
            "size": size,
            "oldRoot": self.roots[old],
            "root": self.roots[size],
            "proof": list(prove_consistency(old, size, self.subtree)),
        }

    def head(self, cluster: str, signers: list[SigningKey]) -> Question:
        head = TreeHead(origin_of(cluster), self.size, self.frontier.root())
        note = SignedNote(head.text, tuple(signer.sign(head.text) for signer in signers))
        return {
            "kind": "head",
            "note": note.encode().encode(),
            "keys": [signer.public.text for signer in signers],
            "signed": len(signers),
            "size": self.size,
            "root": head.root,
        }


def drawn_tree(random: Random) -> DrawnTree:
    """Draw a tree; some are longer than a tile."""
    size = random.choice((random.randrange(1, 40), random.randrange(1, 300), 256, 257))
    if random.random() < 0.02:
        size = random.randrange(512, 1500)
    return DrawnTree([random.randbytes(32) for _ in range(size)])


def questions(random: Random) -> Iterator[Question]:
    """Draw a tree; yield it, a head of it, and proofs."""
    tree = drawn_tree(random)
    yield tree.question()
    origin = origin_of(f"cluster {random.randrange(10)}")
    keys = [SigningKey(origin, random.randbytes(32)) for _ in range(random.choice((1, 3, 5)))]
    question = tree.head("", keys)
    head = TreeHead(origin, tree.size, tree.frontier.root())
    note = SignedNote(head.text, tuple(key.sign(head.text) for key in keys))
    yield question | {"note": note.encode().encode()}
    for _ in range(2):
        size = random.randrange(1, tree.size + 1)
        yield tree.inclusion(random.randrange(size), size)
        yield tree.consistency(random.randrange(1, size + 1), size)


def spoiled(random: Random, question: Question) -> Question:
    """Return the question with one thing changed, so that it isn't right any more."""
    bad = dict(question)
    match bad["kind"]:
        case "tree":
            if random.random() < 0.5:
                bad["root"] = _flipped(random, bad["root"])
            else:
                path = random.choice(sorted(bad["tiles"]))
                bad["tiles"] = bad["tiles"] | {path: _flipped(random, bad["tiles"][path])}
        case "head":
            bad["note"] = _flipped(random, bad["note"], but_before=b"=")
        case kind:
            fields = ["root", "leaf"] if kind == "inclusion" else ["root", "oldRoot"]
            change = random.randrange(4 if bad["proof"] else 2)
            if change < 2:
                field = random.choice(fields)
                bad[field] = _flipped(random, bad[field])
            elif change == 2:
                at = random.randrange(len(bad["proof"]))
                bad["proof"] = list(bad["proof"])
                bad["proof"][at] = _flipped(random, bad["proof"][at])
            else:
                bad["proof"] = bad["proof"][:-1]
    return bad


def _flipped(random: Random, data: bytes, but_before: bytes = b"") -> bytes:
    """Flip a bit. The last letter of base64 has bits that say nothing, and Go passes over them."""
    at = random.randrange(len(data))
    while but_before and data[at + 1 : at + 2] == but_before:
        at = random.randrange(len(data))
    return data[:at] + bytes((data[at] ^ 1 << random.randrange(8),)) + data[at + 1 :]
