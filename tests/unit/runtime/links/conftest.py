"""Nodes with links, each stopped at its test's end."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.unit.runtime.links.tcp_kit import Node, Start


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    nodes: list[Node] = []

    def start_node(node_id: int, port: int = 0, **more: Any) -> Node:
        nodes.append(Node(node_id, port, **more))
        return nodes[-1]

    yield start_node
    for node in nodes:
        node.links.stop()
    await asyncio.sleep(0.01)
