"""The columns about who caused a change, which many tables share."""

from ledger.batch import Provenance
from metadata.uuids import uuid_text


def who(provenance: Provenance) -> tuple[str, str, str, str, str]:
    """Return principal, on_behalf_of, request_id (text, or empty), operation, reason."""
    return (
        provenance.principal,
        provenance.on_behalf_of,
        request_text(provenance),
        provenance.operation,
        provenance.reason,
    )


def request_text(provenance: Provenance) -> str:
    """Return the request id as text; empty if there is none."""
    return uuid_text(provenance.request_id) if provenance.request_id else ""
