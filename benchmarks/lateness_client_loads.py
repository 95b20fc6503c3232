"""The loads of `make lateness` for the routes about clients: ACLs.

Rule: as in `lateness_loads`, which takes these rows into its table.
"""

from typing import Any

from benchmarks.lateness_load import Load
from benchmarks.lateness_stage import Stage

_ACLS = 2_000
"""Entries in one request: the most."""


async def _changed(stage: Stage, method: str, path: str, body: dict[str, Any]) -> Any:
    status, answer = await stage.change(method, path, body)
    assert status == 200, answer
    return answer


async def _acls(stage: Stage) -> None:
    """Entries come 2,000 at a time, are listed and checked, and all go at once."""
    for turn in stage.going_on():
        for number in range(5):
            entries = [
                {
                    "resourceType": "TOPIC",
                    "resourceName": f"t-{turn}-{number}-{entry}",
                    "principal": "User:alice",
                    "operation": "READ",
                }
                for entry in range(_ACLS)
            ]
            await _changed(stage, "POST", "/v1/acls", {"acls": entries})
        await stage.json("/v1/acls?principal=User:bob")
        name = "t" * 249
        query = f"principal=User:alice&operation=READ&resourceType=TOPIC&resourceName={name}"
        await stage.json(f"/v1/acls/check?{query}")
        for dry in (True, False):
            body = {"filters": [{"principal": "User:alice"}], "dryRun": dry}
            await _changed(stage, "DELETE", "/v1/acls", body)


CLIENT_LOADS = (
    Load(
        "10,000 access control entries come and go",
        ("create_acls", "delete_acls", "list_acls", "check_acl"),
        _acls,
        ("AccessControlEntryRecord", "RemoveAccessControlEntryRecord"),
    ),
)
