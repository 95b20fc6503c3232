"""`logberg audit check-proof`: whether a batch proof holds, offline."""

from pathlib import Path
from typing import Any, Final

import click

from audit.questions.batch_proofs import ProofRefusedError, check_proof, read_proof
from audit.reading.dump import utc
from ledger.batch import Batch
from logberg.cli.failure import Failure
from logberg.cli.output import output_option, print_json, say
from logberg.commands.audit.record_output import short
from logberg.commands.head_keys import public_key_of
from metadata.codec import RecordDecodeError, decode_records
from metadata.messages.records_json import record_to_json
from metadata.uuids import uuid_text

_SHOWN: Final = 20
"""Records that are printed; JSON has all."""


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
        found = check_proof(read_proof(file.read_bytes()), [public_key_of(text) for text in keys])
    except OSError as error:
        raise Failure(f"{file} can't be read ({error.strerror})") from None
    except ProofRefusedError as error:
        raise Failure(f"REFUSED: {error}") from None
    header = found.batch.header
    cause = header.cause(uuid_text)
    records, unread = _records(found.batch)
    if output == "json":
        print_json(
            {
                "clusterId": found.cluster_id,
                "offset": found.offset,
                "leafIndex": found.leaf,
                "timestampMs": header.timestamp_ms,
                "cause": cause,
                "records": records,
                "headSize": found.head.size,
                "signedBy": [key.text for key in found.signers],
                "olderSize": None if found.older is None else found.older.size,
            }
        )
        return
    say(f"RIGHT: offset {found.offset} is in the log of {found.cluster_id}, batch {found.leaf}")
    say(f"time: {utc(header.timestamp_ms)}")
    for name, value in cause.items():
        say(f"{name}: {value}")
    for number, record in enumerate(records[:_SHOWN]):
        fields = " ".join(f"{name}={short(value)}" for name, value in record["data"].items())
        say(f"change: {header.base_offset + number}  {record['type']}  {fields}")
    if unread:
        say(f"what was changed can't be shown: {unread}", err=True)
    if len(records) > _SHOWN:
        say(f"and {len(records) - _SHOWN} more records")
    say(f"under a head of {found.head.size} batches that {len(found.signers)} keys signed")
    if found.older is not None:
        say(f"the first {found.older.size} batches are those of the older head")


def _records(batch: Batch) -> tuple[list[dict[str, Any]], str]:
    """Return what was changed, without secrets; or why that can't be shown."""
    try:
        return [record_to_json(record) for record in decode_records(batch.records)], ""
    except RecordDecodeError as error:
        return [], str(error)
