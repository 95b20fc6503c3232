"""`logberg audit prove`: a file that shows that a change is in the log."""

from pathlib import Path
from urllib.parse import quote

import click
import msgspec

from ledger.errors import LedgerError
from ledger.merkle.heads import TreeHead
from ledger.merkle.notes import SignedNote
from logberg.cli.connection_options import ClusterConnection, cluster_options
from logberg.cli.failure import Failure
from logberg.cli.output import print_json, say
from logberg.commands.audit.local_paths import LocalPath
from metadata.messages import BatchProofReply


@click.command("prove")
@click.argument("change", metavar="OFFSET|REQUEST_ID")
@click.option(
    "--out",
    type=LocalPath(),
    help="Where to write the proof (default: proof-OFFSET.json). A file is never overwritten.",
)
@click.option(
    "--older",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="A signed head that was kept: also prove that no history before it has changed.",
)
@cluster_options
def command(
    *, change: str, out: Path | None, older: Path | None, cluster: ClusterConnection, output: str
) -> None:
    """Write a receipt: a change is in the log under the newest signed head.

    OFFSET is any offset of the change. REQUEST_ID is what the change was answered with; the
    controllers remember the ids of one day.

    Anybody can check the file offline, with the controllers' public keys (head.pub in their
    folders): `logberg audit check-proof`, or verifier/logberg_proof.py, which needs no Logberg.
    """
    query: dict[str, str] = {}
    kept = ""
    if older is not None:
        kept, head = _head_in(older)
        query["olderSize"] = str(head.size)
    proof = cluster.ask(
        lambda client: client.get(f"/v1/proofs/{quote(change, safe='')}", BatchProofReply, query)
    )
    proof = msgspec.structs.replace(proof, older_head=kept)
    path = out or Path(f"proof-{proof.offset}.json")
    try:
        with path.open("xb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(proof), indent=1) + b"\n")
    except OSError as error:
        raise Failure(f"{path} can't be written ({error.strerror})") from None
    size = TreeHead.parse(SignedNote.parse(proof.head.encode()).text).size
    if output == "json":
        print_json({"file": str(path), "leafIndex": proof.leaf_index, "headSize": size})
        return
    say(f"{path}: batch {proof.leaf_index} of the log, under a head of {size} batches")


def _head_in(path: Path) -> tuple[str, TreeHead]:
    try:
        note = SignedNote.parse(path.read_bytes())
        return note.encode(), TreeHead.parse(note.text)
    except OSError as error:
        raise Failure(f"{path} can't be read ({error.strerror})") from None
    except LedgerError as error:
        raise Failure(f"{path} is no signed head: {error}") from None
