"""Checks that each batch of a log names the right principal.

Rule: a batch comes from a controller, from a broker, or from a request with an id. Its principal
must be the leader of its epoch, the broker that its records register or change, or the sender of
that request. This holds in clusters that require authentication.
"""

from collections.abc import Iterable, Mapping

from ledger.batch import Batch
from metadata.codec import decode_records
from metadata.records import (
    AttemptsRecord,
    BeginEpochRecord,
    BrokerRegistrationChangeRecord,
    HeadKeyRecord,
    PartitionChangeRecord,
    Record,
    RegisterBrokerRecord,
    RegisterControllerRecord,
)
from metadata.uuids import uuid_text

OF_OTHERS = ("RegisterController", "RegisterHeadKey", "RotateHeadKey", "ReportAttempts")
"""What a leader writes as the controller that told it."""
OF_CONTROLLERS = frozenset(
    {
        "BeginEpoch",
        "FenceBroker",
        "BeginControlledShutdown",
        "ExpireSession",
        "ExpireTokens",
        "NameSubjectKeys",
        "GivePseudonyms",
        "BeginFeatureLevels",
        "ElectLeaders",
        "SignHead",
        "RemoveHeadKeys",
        *OF_OTHERS,
    }
)
OF_BROKERS = frozenset(
    {"RegisterBroker", "UnfenceBroker", "FenceBroker", "BeginControlledShutdown"}
)
ALTER_ISR = "AlterPartition"
OFFLINE = frozenset({"RecoverQuorum", "BeginGeneration"})
"""What a person does to the files of a stopped node, under a name of that person's own."""


def false_principals(batches: Iterable[Batch], carriers: Mapping[str, str]) -> list[str]:
    """Return a sentence for each batch whose principal can't be right.

    `carriers`: by request id, the principal of who sent it, as far as that is known.
    """
    found = []
    leader = -1
    for batch in batches:
        records = list(decode_records(batch.records))
        leader = next((r.leader_id for r in records if isinstance(r, BeginEpochRecord)), leader)
        expected = _expected(batch, records, leader, carriers)
        header = batch.header
        said = header.provenance
        if said.principal not in expected or header.acted_as:
            found.append(
                f"the batch at {header.base_offset} ({said.operation}) says {said.principal!r} as "
                f"{header.acted_as!r}; {sorted(expected)} can have caused it"
            )
    return found


def _expected(
    batch: Batch, records: list[Record], leader: int, carriers: Mapping[str, str]
) -> set[str]:
    said = batch.header.provenance
    if said.request_id:
        # Whoever is not known here is a command's user.
        return {carriers.get(uuid_text(said.request_id), said.principal)} & {
            *carriers.values(),
            "User:admin",
        }
    if said.auth_method == "internal":
        if said.operation not in OF_CONTROLLERS:
            return set()
        told = RegisterControllerRecord | HeadKeyRecord | AttemptsRecord
        registered = [
            record.controller_id
            for record in records
            if isinstance(record, told) and said.operation in OF_OTHERS
        ]
        return {f"Controller:{registered[0] if registered else leader}"}
    if said.auth_method == "offline" and said.operation in OFFLINE:
        return {said.principal} if said.principal.startswith("User:") else set()
    if said.operation not in {*OF_BROKERS, ALTER_ISR}:
        return set()
    if said.operation == ALTER_ISR:
        # The leader asks, and it stays in the ISR.
        changed = [set(r.isr or ()) for r in records if isinstance(r, PartitionChangeRecord)]
        return {f"Broker:{n}" for n in set.intersection(*changed)} if changed else set()
    brokers = {
        f"Broker:{record.broker_id}"
        for record in records
        if isinstance(record, RegisterBrokerRecord | BrokerRegistrationChangeRecord)
    }
    if not brokers and said.principal.startswith("Broker:"):
        # A round of an event that touches many partitions: the broker's own record comes last.
        return {said.principal}
    return brokers
