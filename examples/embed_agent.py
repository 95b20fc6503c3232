"""A broker in a few lines: the agent inside a program, beside a cluster of `quorate up`.

    quorate up                               # in one terminal
    python examples/embed_agent.py           # in another; Ctrl-C stops it in a controlled way

QUORATE_DATA names the folder of the cluster (./quorate-data); QUORATE_BROKER_ID is ours (4).
"""

import asyncio
import json
import os
from pathlib import Path

from broker_agent.config import AgentConfig, Endpoint
from broker_agent.library import BrokerAgent
from broker_agent.publishers import PartitionKey
from runtime.tls import client_context


class Partitions:
    """What a broker does with its partitions; a real one would open logs and followers."""

    def lead(self, partition: PartitionKey, topic: str, leader_epoch: int) -> None:
        print(f"lead    {topic}-{partition.partition} at leader epoch {leader_epoch}")

    def follow(self, partition: PartitionKey, topic: str, leader: int, leader_epoch: int) -> None:
        print(f"follow  {topic}-{partition.partition}: broker {leader}, epoch {leader_epoch}")

    def drop(self, partition: PartitionKey) -> None:
        print(f"drop    partition {partition.partition}")


def make_agent(folder: Path, broker_id: int) -> BrokerAgent:
    """Configure an agent for the cluster that runs in a folder."""
    cluster = json.loads((folder / "cluster.json").read_text())
    config = AgentConfig(
        cluster_id=cluster["clusterId"],
        broker_id=broker_id,
        controllers=tuple(n["url"] for n in cluster["nodes"] if n["role"] == "controller"),
        endpoints=(Endpoint("CLIENTS", "127.0.0.1", 9092 + broker_id),),
    )
    return BrokerAgent(
        config,
        data=folder / f"embedded-{broker_id}",
        tls=client_context(Path(cluster["ca"])),
        token=Path(cluster["tokenFile"]).read_text().strip(),
        duties=Partitions(),
    )


async def main() -> None:
    """Come online, say what there is, and stay until Ctrl-C or until expelled."""
    folder = Path(os.environ.get("QUORATE_DATA", "quorate-data"))
    broker_id = int(os.environ.get("QUORATE_BROKER_ID", "4"))
    async with make_agent(folder, broker_id) as agent:
        await agent.wait_online()
        names = ", ".join(agent.image.topics.by_name) or "none yet"
        print(f"online with broker epoch {agent.core.broker_epoch}; topics: {names}")
        ending = await agent.wait_gone()
        print(ending.reason)


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        print("stopped")
