"""DescribeClientQuotas and AlterClientQuotas, as our routes of quotas (KIP-546)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from kafka_listener.admin.admin_call import AdminCall
from kafka_listener.asking.in_steps import each
from kafka_listener.asking.kafka_code import KafkaCode
from kafka_listener.asking.request import Fields, KafkaFailure, Steps
from metadata.messages import (
    AlteredQuotas,
    AlterQuotasReply,
    AlterQuotasRequest,
    ListQuotasReply,
    QuotaAlteration,
    QuotaEntity,
    QuotaEntityPart,
    QuotaOperation,
)

_PARTS: Final[Mapping[str, str]] = MappingProxyType(
    {"user": "user", "client-id": "clientId", "ip": "ip"}
)
"""The route's parameter for each type of entity."""
_EXACT, _DEFAULT, _ANY = 0, 1, 2


def describe_client_quotas(call: AdminCall) -> None:
    """DescribeClientQuotas (48)."""
    query: dict[str, str] = {}
    for component in call.fields["Components"]:
        query |= _query_of(component, query)
    query["strict"] = "true" if call.fields["Strict"] else "false"

    def then(pages: list[ListQuotasReply]) -> None:
        entries = (
            {
                "Entity": _entity(entry.entity),
                "Values": [{"Key": key, "Value": value} for key, value in entry.values.items()],
            }
            for page in pages
            for entry in page.entries
        )
        call.answer({"Entries": entries, **call.result(None)})

    call.read_all("/v1/quotas", ListQuotasReply, then, query)


def _query_of(component: Fields, before: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters for one part of a filter. Raises KafkaFailure INVALID_REQUEST."""
    kind, match = component["EntityType"], component["Match"]
    name = _PARTS.get(kind)
    if name is None:
        raise KafkaFailure(
            KafkaCode.UNSUPPORTED_VERSION, f"Custom entity type '{kind[:50]}' not supported"
        )
    if name + "Match" in before:
        raise KafkaFailure(KafkaCode.INVALID_REQUEST, f"{kind} is in the filter twice")
    match component["MatchType"]:
        case 0 if match is not None:
            return {name: match, name + "Match": "exact"}
        case 1 if match is None:
            return {name + "Match": "default"}
        case 2 if match is None:
            return {name + "Match": "any"}
    raise KafkaFailure(
        KafkaCode.INVALID_REQUEST,
        f"{kind}: match type 0 needs a name; types 1 (default) and 2 (any) have none; there is no "
        "other",
    )


def alter_client_quotas(call: AdminCall) -> Steps:
    """AlterClientQuotas (49): each entity is decided by itself."""
    entries = call.fields["Entries"]
    if not entries:
        call.answer({"Entries": []})
        return
    message = AlterQuotasRequest((yield from each(_alteration, entries)), call.dry_run)

    def result(altered: AlteredQuotas) -> dict[str, Any]:
        return {"Entity": _entity(altered.entity), **call.result(altered.error)}

    def then(reply: AlterQuotasReply) -> None:
        call.answer({"Entries": map(result, reply.entries)})

    call.change("POST", "/v1/quotas", message, AlterQuotasReply, then)


def _alteration(entry: Fields) -> QuotaAlteration:
    return QuotaAlteration(
        tuple(QuotaEntityPart(part["EntityType"], part["EntityName"]) for part in entry["Entity"]),
        tuple(
            QuotaOperation(one["Key"], None if one["Remove"] else one["Value"])
            for one in entry["Ops"]
        ),
    )


def _entity(parts: tuple[QuotaEntity, ...]) -> list[dict[str, Any]]:
    return [{"EntityType": part.entity_type, "EntityName": part.entity_name} for part in parts]
