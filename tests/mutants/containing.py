"""Mutants of the code that detects and contains corruption: at rest, on the network, in memory."""

from collections.abc import Iterator
from typing import Any

from tests.mutants.mutant import Mutant
from tests.mutants.patches import Patch, edited, gives, instead


def _finds_nothing(*_args: Any) -> Iterator[int]:
    """As if every byte were what it was."""
    return iter(())


def _reads_once(_self: Any, read: Any) -> Iterator[int]:
    yield from read()


CONTAINING = (
    Mutant(
        "rot at rest is not looked for",
        "6, I10",
        "Segments that nobody reads may rot until no peer can mend them.",
        (Patch("controller.storage.scrubbing.scrub_segment", instead(_finds_nothing)),),
    ),
    Mutant(
        "rot of the closed journal is not seen",
        "6, I10",
        "The journal's segments are not read before the next start needs them.",
        (Patch("quorum.journal.scrub._scrub", instead(_finds_nothing)),),
    ),
    Mutant(
        "one bad read is believed",
        "6",
        "A sound file is put aside since it was read wrongly once.",
        (Patch("controller.storage.scrubbing.Scrubbing._twice", instead(_reads_once)),),
    ),
    Mutant(
        "checkpoint of another history is loaded",
        "6, 12, I10",
        "A checkpoint is not held against the chain of the ledger beside it.",
        (Patch("controller.storage.checkpoint_loading._must_be_of", gives(None)),),
    ),
    Mutant(
        "who was wrong serves again",
        "6, I10",
        "A state that differed from the majority's is served when later offsets agree.",
        (
            Patch(
                "controller.replica.digests.DigestComparison.verdict",
                edited(("if self._wrong:", "if False:")),
            ),
        ),
    ),
    Mutant(
        "a wrong state is kept for the next start",
        "6, 12, I10",
        "Who differs from the majority goes on writing and loading checkpoints.",
        (Patch("controller.storage.snapshotting.Snapshotting.distrust", gives(None)),),
    ),
    Mutant(
        "header on the wire unchecked",
        "6",
        "A flipped bit of a length makes a link wait for what never comes.",
        (
            Patch(
                "runtime.links.frames.LinkFrameReader._parse",
                edited(
                    (
                        "if google_crc32c.value(data[position : position + _SAID.size]) != sealed:",
                        "if False:",
                    )
                ),
            ),
        ),
    ),
    Mutant(
        "frame on the wire unchecked",
        "6, I10",
        "A frame that a bad cable changed is taken for what was sent.",
        (
            Patch(
                "runtime.links.frames.LinkFrameReader._parse",
                edited(("if google_crc32c.value(payload) != checksum:", "if False:")),
            ),
        ),
    ),
    Mutant(
        "body on the wire unchecked",
        "6, I10",
        "A request or an answer that a bad cable changed is taken for what was sent.",
        tuple(
            Patch(f"runtime.http.{module}.is_content", gives(True))
            for module in ("content_digest", "client", "reading")
        ),
    ),
)
