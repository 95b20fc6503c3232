"""The operations about configs.

Rule: as in `operations`: one method for each public route, and lists are complete.
"""

from collections.abc import Mapping
from typing import TypeVar
from urllib.parse import quote

import msgspec

from logberg.client.asking import Asking
from logberg.client.paged_lists import all_pages, joining
from metadata.messages.configs import (
    AlterConfigsReply,
    ConfigChange,
    ConfigResourceChange,
    DescribeConfigsReply,
    ListConfigsReply,
)

T = TypeVar("T")


class ConfigOperations(Asking):
    """Every method raises ClientError."""

    async def config_resources(self, resource_type: str | None = None) -> ListConfigsReply:
        """Return the resources that have configs of their own, by type and name."""
        only = {} if resource_type is None else {"type": resource_type}

        async def get(path: str, reply: type[T], query: Mapping[str, str] | None = None) -> T:
            return await self.get(path, reply, {**(query or {}), **only})

        return await all_pages(get, "/v1/configs", ListConfigsReply, joining("resources"))

    async def configs(self, resource_type: str, name: str) -> DescribeConfigsReply:
        """Return the configs of a resource: the values that apply, and where they come from.

        `resource_type`: topic, broker, group or client-metrics. The broker `default` is the default
        of all brokers.
        """
        return await self.get(config_path(resource_type, name), DescribeConfigsReply)

    async def alter_configs(
        self,
        resource_type: str,
        name: str,
        *changes: ConfigChange,
        reason: str = "",
        request_id: str | None = None,
        expect_offset: int | None = None,
        dry_run: bool = False,
    ) -> AlterConfigsReply:
        """Change configs of one resource: all of them, or none."""
        body = {"configs": msgspec.to_builtins(changes), "dryRun": dry_run}
        path = config_path(resource_type, name)
        return await self.change(
            "PATCH",
            path,
            AlterConfigsReply,
            body,
            reason,
            request_id=request_id,
            expect_offset=expect_offset,
        )

    async def alter_configs_of(
        self,
        *resources: ConfigResourceChange,
        reason: str = "",
        request_id: str | None = None,
        expect_offset: int | None = None,
        dry_run: bool = False,
    ) -> AlterConfigsReply:
        """Change configs of several resources. One that is refused has its `error`."""
        body = {"resources": msgspec.to_builtins(resources), "dryRun": dry_run}
        return await self.change(
            "PATCH",
            "/v1/configs",
            AlterConfigsReply,
            body,
            reason,
            request_id=request_id,
            expect_offset=expect_offset,
        )


def config_path(resource_type: str, name: str) -> str:
    """Return the path of a resource's configs."""
    return f"/v1/configs/{quote(resource_type, safe='')}/{quote(name, safe='')}"
