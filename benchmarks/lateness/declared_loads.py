"""The loads of `make lateness` for the routes of declared state.

Rule: as in `benchmarks.lateness.loads`, which takes these rows into its table.
"""

from typing import Any

from benchmarks.lateness.load import Load
from benchmarks.lateness.stage import TOKEN, Stage

_TOPICS = 2_000
"""Topics in one declaration. All of them with their records are one transaction."""
_OTHERS = 400


async def _apply(stage: Stage, declared: dict[str, Any]) -> Any:
    status, answer = await stage.change("POST", "/v1/apply", declared, bearer=TOKEN)
    assert status == 200, answer
    assert answer["refused"] == 0, answer
    return answer


async def _declared(stage: Stage) -> None:
    """Thousands of topics with partitions, and entries of all other kinds, come as one change."""
    for turn in stage.going_on():
        topics = [
            {"name": f"declared-{turn}-{number}", "partitions": 5, "replicationFactor": 3}
            for number in range(_TOPICS)
        ]
        names = [f"declared-{turn}-{number}" for number in range(_OTHERS)]
        declared: dict[str, Any] = {
            "topics": topics,
            "quotas": [
                {
                    "entity": [{"entityType": "user", "entityName": name}],
                    "quotas": {"producer_byte_rate": 1024.0},
                }
                for name in names
            ],
            "acls": [
                {
                    "resourceType": "TOPIC",
                    "resourceName": name,
                    "principal": "User:alice",
                    "operation": "READ",
                }
                for name in names
            ],
        }
        await _apply(stage, {**declared, "dryRun": True})
        await _apply(stage, declared)
        again = await _apply(stage, declared)
        assert again["items"] == [], "an apply that was made differs"
        await stage.json("/v1/export")
        await stage.json("/v1/export?kinds=quotas,acls,users,configs")
        await _apply(stage, {"prune": ["quotas", "acls"]})
        gone = {"names": [topic["name"] for topic in topics]}
        status, answer = await stage.change("DELETE", "/v1/topics", gone, bearer=TOKEN)
        assert status == 200, answer


DECLARED_LOADS = (
    Load(
        "2,000 declared topics, 400 quotas and ACLs as one change", ("apply", "export"), _declared
    ),
)
