"""How `verify` and `compare` show where replicas differ."""

from typing import Any

from audit.questions.compare import Comparison
from audit.reading.dump import caller_of
from logberg.cli.output import say
from logberg.commands.audit.record_output import short


def show_divergences(compared: Comparison) -> None:
    """Print who agrees, who was left out, and both batches at each first difference."""
    if not compared.divergences and len(compared.agreed) > 1:
        say(f"{len(compared.agreed)} logs agree up to offset {compared.common_offset}")
    for name, why in compared.left_out.items():
        say(f"{name} could not be compared: {why}")
    for found in compared.divergences:
        say(compared.sentence(found))
        for name, batch in ((found.replica, found.batch), (found.other, found.other_batch)):
            _show_batch(name, batch)


def comparison_json(compared: Comparison) -> dict[str, Any]:
    """Return the whole comparison as plain values."""
    return {
        "commonOffset": compared.common_offset,
        "agreed": compared.agreed,
        "majority": compared.majority,
        "divergences": [
            {
                "log": found.replica,
                "other": found.other,
                "offset": found.offset,
                "batch": found.batch,
                "otherBatch": found.other_batch,
            }
            for found in compared.divergences
        ],
        "leftOut": compared.left_out,
    }


def _show_batch(name: str, batch: dict[str, Any]) -> None:
    if not batch:
        say(f"  {name}: no batch there")
        return
    who = caller_of(batch)
    said = f"{batch.get('time', '')}  {who}  {batch.get('operation', '-')}"
    say(f"  {name}: {batch['baseOffset']}  {said}  #{batch['hash'][:16]}")
    for record in batch.get("records", ()):
        fields = " ".join(f"{field}={short(value)}" for field, value in record["data"].items())
        say(f"      {record['offset']}  {record['type']}  {fields}")
    if "unreadable" in batch:
        say(f"      {batch['unreadable']}")
