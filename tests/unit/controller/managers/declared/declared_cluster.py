"""One controller with three brokers, to which tests apply declarations."""

from typing import Any

from metadata.messages.records_json import record_to_json
from metadata.records import RequestOutcomeRecord
from tests.unit.controller.cluster import DECLARED, Cluster
from tests.unit.controller.managers.clients.running_cases import settings_of


class DeclaredCluster:
    """Asks over HTTP."""

    def __init__(self, **settings: Any) -> None:
        self.cluster: Any = Cluster(nodes=1, **settings_of({"settings": settings}))
        self.cluster.online(1, 2, 3, features=DECLARED)

    @property
    def offset(self) -> int:
        self.cluster.run(0.05)
        return self.cluster.image.offset

    def apply(self, declared: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        return self.cluster.ask("POST", "/v1/apply", declared)

    def applied(self, declared: dict[str, Any]) -> dict[str, Any]:
        status, reply = self.apply(declared)
        assert status == 200, reply
        return reply

    def export(self, **query: str) -> dict[str, Any]:
        """Return the whole export, joined from its pages."""
        whole: dict[str, Any] = {}
        while True:
            status, page = self.cluster.ask("GET", "/v1/export", query=query)
            assert status == 200, page
            for name, value in page.items():
                if isinstance(value, list):
                    whole.setdefault(name, []).extend(value)
                elif name != "continuation":
                    assert whole.setdefault(name, value) == value, name
            if page["continuation"] is None:
                return whole
            query = {**query, "continuation": page["continuation"]}

    def is_idempotent(self, declared: dict[str, Any]) -> bool:
        """Apply again: nothing differs, and nothing is written."""
        before = self.offset
        reply = self.applied(declared)
        return reply["items"] == [] and self.offset == before

    def written(self, since: int) -> list[str]:
        """Return the classes of the records since an offset, without outcomes of requests."""
        return [
            type(record).__name__
            for record in self.cluster.records(since)
            if not isinstance(record, RequestOutcomeRecord)
        ]

    def types(self, since: int) -> list[str]:
        """Return the same by the names of a dry run, sorted."""
        return sorted(
            record_to_json(record)["type"]
            for record in self.cluster.records(since)
            if not isinstance(record, RequestOutcomeRecord)
        )


def words(reply: dict[str, Any]) -> list[str]:
    """Return a plan's items, one a line."""
    return [_line(item) for item in reply["items"]]


def _line(item: dict[str, Any]) -> str:
    differences = ", ".join(
        f"{each['name']} {each['before'] or '-'}>{each['after'] or '-'}"
        for each in item["differences"]
    )
    line = f"{item['action']} {item['kind']} {item['name']}"
    line += f": {differences}" if differences else ""
    return line + (f" ! {item['error']['code']}" if item["error"] else "")
