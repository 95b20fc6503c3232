"""A service with a broker agent inside: what to hear, what to ask, how to leave.

    logberg up                                    # in another terminal
    python examples/embed_agent.py logberg-data   # until Ctrl-C

It joins the cluster as broker 9, with a certificate of the cluster's own CA. Create a topic and see
what this broker must do.
"""

import asyncio
import signal
import sys
from pathlib import Path

from logberg import (
    AgentConfig,
    BrokerAgent,
    Endpoint,
    Manifest,
    MetadataImage,
    PartitionKey,
    find_local_cluster,
    run_until_gone,
)

BROKER_ID = 9


class Printer:
    """A publisher: called with every step from one image to the next, in order."""

    def on_metadata(self, before: MetadataImage, after: MetadataImage, manifest: Manifest) -> None:
        """Must return soon: it runs on the agent's loop."""
        print(f"metadata up to offset {manifest.offset}: {len(after.topics.by_name)} topics")


class Partitions:
    """What this broker does with its partitions; the epochs let it refuse old leaders."""

    def lead(self, partition: PartitionKey, topic: str, leader_epoch: int) -> None:
        """Become, or go on as, the leader."""
        print(f"lead {topic}-{partition.partition} at leader epoch {leader_epoch}")

    def follow(self, partition: PartitionKey, topic: str, leader: int, leader_epoch: int) -> None:
        """Follow `leader`; -1 is nobody."""
        print(f"follow {leader} for {topic}-{partition.partition} at leader epoch {leader_epoch}")

    def drop(self, partition: PartitionKey) -> None:
        """Our replica is gone."""
        print(f"drop partition {partition.partition} of a deleted topic")


async def serve(agent: BrokerAgent) -> None:
    """Stands for the service's own work."""
    await agent.wait_online()
    print("online")
    while True:
        # Ask before every answer to a client: an agent that is cut off says no in time.
        if not agent.may_serve():
            print(f"not serving: {agent.health().reason}")
        await asyncio.sleep(1)


async def main(folder: Path) -> int:
    """Join, serve, leave."""
    cluster = find_local_cluster(folder)
    config = AgentConfig(
        cluster_id=cluster.cluster_id,
        broker_id=BROKER_ID,
        controllers=cluster.controllers,
        endpoints=(Endpoint("PLAINTEXT", "127.0.0.1", 9092),),
    )
    async with BrokerAgent(
        config,
        data=folder / f"broker-{BROKER_ID}",
        tls=cluster.broker_tls(BROKER_ID),
        publishers=(Printer(),),
        duties=Partitions(),
    ) as agent:
        work = asyncio.create_task(serve(agent))
        # A signal begins a controlled shutdown: the cluster moves our leaders off first.
        ending = await run_until_gone(agent, (signal.SIGTERM, signal.SIGINT), {})
        work.cancel()
    print(f"gone: {ending.reason}")
    return 0 if ending.orderly else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main(Path(sys.argv[1] if len(sys.argv) > 1 else "logberg-data"))))
