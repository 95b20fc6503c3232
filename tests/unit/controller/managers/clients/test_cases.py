"""The tables of access control entries, quotas, SCRAM credentials, tokens and producer ids.

Each case runs twice: by the managers with replay alone, and over HTTP on a controller.
"""

import json
from typing import Any

import pytest

from metadata.records import EntityData
from runtime.http.requests import Caller, Request
from tests.unit.controller.managers.clients.running_cases import (
    ByManagers,
    OverHttp,
    cases,
    run,
)

TABLES = ("acls", "quotas", "scram", "tokens", "producer_ids")
ALL = [
    pytest.param(case, id=f"{table}: {case['name']}") for table in TABLES for case in cases(table)
]


@pytest.mark.parametrize("runner", [ByManagers, OverHttp], ids=["managers", "http"])
@pytest.mark.parametrize("case", ALL)
def test_a_case(case: dict[str, Any], runner: Any) -> None:
    made = runner(case)
    run(made, case)
    if "lives_ms" in case:
        image = made.image if runner is ByManagers else made.cluster.image
        (token,) = (image.tokens.tokens[token_id] for token_id in image.tokens.order)
        assert token.max_timestamp - token.issue_timestamp == case["lives_ms"]


@pytest.fixture(scope="module")
def one() -> OverHttp:
    return OverHttp({})


@pytest.mark.parametrize("case", cases("quota_resolution"), ids=lambda case: case["name"])
def test_which_quota_applies(one: OverHttp, case: dict[str, Any]) -> None:
    key = case.get("key", "producer_byte_rate")
    rows = {key: case["quotas"], "request_percentage": case.get("percentages", {})}
    given = {
        key: {entity_of(text): value for text, value in quotas.items()}
        for key, quotas in rows.items()
        if quotas
    }
    for runner in (ByManagers({}), one):
        for key, quotas in given.items():
            alter(runner, key, quotas)
        request = Request("GET", "/v1/quotas/resolve", query=case["client"])
        status, reply = runner.ask(request)
        assert status == 200
        wanted = [value for value in (case["expect"], case.get("percentage")) if value]
        assert [quota["value"] for quota in reply["quotas"]] == wanted
        for key, quotas in given.items():
            alter(runner, key, dict.fromkeys(quotas))


def entity_of(text: str) -> tuple[EntityData, ...]:
    parts = (part.split("=") for part in text.split(","))
    return tuple(EntityData(kind, None if name == "*" else name) for kind, name in parts)


def alter(runner: Any, key: str, values: dict[tuple[EntityData, ...], float | None]) -> None:
    entries = [
        {
            "entity": [
                {"entityType": part.entity_type, "entityName": part.entity_name} for part in entity
            ],
            "operations": [{"key": key, "value": value}],
        }
        for entity, value in values.items()
    ]
    request = Request(
        "POST",
        "/v1/quotas",
        json.dumps({"entries": entries}).encode(),
        {},
        {"content-type": "application/json"},
        Caller("User:admin", "token", "10.0.0.1"),
    )
    status, reply = runner.ask(request)
    assert status == 200, reply
    assert [entry["error"] for entry in reply["entries"]] == [None] * len(entries)
