"""`logberg audit check-proof`: whether a batch proof holds, offline."""

from pathlib import Path

import click

from audit.questions.batch_proofs import ProofRefusedError, check_proof, read_proof
from ledger.errors import LedgerError
from ledger.merkle.notes import NoteKey
from logberg.cli.failure import Failure
from logberg.cli.output import output_option, print_json, say
from metadata.uuids import uuid_text


@click.command("check-proof")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@click.option(
    "--key",
    "keys",
    multiple=True,
    required=True,
    metavar="KEY",
    help="A controller's public key: its head.pub, as a file or as the line in it. Give all of "
    "them; a majority must have signed.",
)
@output_option
def command(file: Path, keys: tuple[str, ...], output: str) -> None:
    """Check a proof that `logberg audit prove` wrote. It asks no controller.

    Exit 1 if the proof doesn't hold; the message names what fails.
    """
    try:
        found = check_proof(read_proof(file.read_bytes()), [_key(text) for text in keys])
    except OSError as error:
        raise Failure(f"{file} can't be read ({error.strerror})") from None
    except ProofRefusedError as error:
        raise Failure(f"REFUSED: {error}") from None
    header = found.batch.header
    cause = header.cause(uuid_text)
    if output == "json":
        print_json(
            {
                "clusterId": found.cluster_id,
                "offset": found.offset,
                "leafIndex": found.leaf,
                "timestampMs": header.timestamp_ms,
                "cause": cause,
                "headSize": found.head.size,
                "signedBy": [key.text for key in found.signers],
                "olderSize": None if found.older is None else found.older.size,
            }
        )
        return
    say(f"RIGHT: offset {found.offset} is in the log of {found.cluster_id}, batch {found.leaf}")
    say(f"time: {header.timestamp_ms} ms since 1970")
    for name, value in cause.items():
        say(f"{name}: {value}")
    say(f"under a head of {found.head.size} batches that {len(found.signers)} keys signed")
    if found.older is not None:
        say(f"the first {found.older.size} batches are those of the older head")


def _key(text: str) -> NoteKey:
    try:
        return NoteKey.parse(Path(text).read_text(encoding="utf-8") if "+" not in text else text)
    except (OSError, UnicodeDecodeError):
        raise Failure(f"--key {text}: it is neither a file nor a key") from None
    except LedgerError as error:
        raise Failure(f"--key: {error}") from None
