"""Controllers that serve signed heads and tiles of a log, for agents."""

from typing import Any

from ledger.merkle.heads import TreeHead, origin_of
from ledger.merkle.notes import NoteKey, SignedNote, SigningKey
from ledger.merkle.tiles import WIDTH, TreeTile
from metadata.messages import HEAD_KEYS_HEADER
from runtime.http.requests import Reply
from tests.oracles.transparency.drawn_trees import DrawnTree
from tests.unit.broker_agent.fake_cluster import CLUSTER_ID, Asked, Log

SEEDS = tuple(bytes((number,)) * 32 for number in (1, 2, 3))


class SignedHeads:
    """Answers requests for the head and the tiles; hands all others on."""

    def __init__(self, rig: Any, log: Log, generation: int = 1) -> None:
        self.log = log
        self.origin = origin_of(CLUSTER_ID, generation)
        self.signers = [SigningKey(self.origin, seed) for seed in SEEDS]
        self.size: int | None = None
        """Of the head; None: the whole log's."""
        self.answers = True
        self.names_keys = True
        self.spoils_tiles = False
        self.asked: list[str] = []
        self.urls: tuple[str, ...] = ()
        """Of the controllers that serve these heads; empty: all do."""
        self.on(rig)

    def on(self, rig: Any) -> None:
        """Answer this agent, too: after each boot."""
        self._next = rig.controllers.on_ask
        rig.controllers.on_ask = self._on_ask

    @property
    def keys(self) -> tuple[NoteKey, ...]:
        return tuple(signer.public for signer in self.signers)

    def tree(self) -> DrawnTree:
        return DrawnTree([batch.hash for batch in self.log.batches])

    def _on_ask(self, asked: Asked) -> None:
        path = asked.request.path
        is_ours = not self.urls or asked.url in self.urls
        if not is_ours or (path != "/checkpoint" and not path.startswith("/tile/")):
            self._next(asked)
            return
        self.asked.append(path)
        if not self.answers:
            asked.give(Reply(404, b"{}"))
        elif path == "/checkpoint":
            asked.give(self._head())
        else:
            asked.give(self._tile(TreeTile.parse(path[1:])))

    def _head(self) -> Reply:
        tree = self.tree()
        size = tree.size if self.size is None else self.size
        head = TreeHead(self.origin, size, tree.roots[size])
        note = SignedNote(head.text, tuple(one.sign(head.text) for one in self.signers))
        lines = ",".join(key.text for key in self.keys) if self.names_keys else ""
        return Reply(200, note.encode().encode(), {HEAD_KEYS_HEADER: lines})

    def _tile(self, tile: TreeTile) -> Reply:
        rows = self.tree().rows
        first = tile.number * WIDTH
        row = rows[tile.level] if tile.level < len(rows) else []
        found = row[first : first + tile.width]
        if len(found) < tile.width:
            return Reply(404, b"{}")
        data = b"".join(found)
        if self.spoils_tiles:
            data = bytes(len(data))
        return Reply(200, data)
