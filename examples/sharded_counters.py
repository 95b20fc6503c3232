"""Counters, sharded over the brokers of a cluster: each key is counted by one of them.

    logberg up --brokers 0                                    # each line in a terminal of its own
    python examples/sharded_counters.py 1 8001 logberg-data
    python examples/sharded_counters.py 2 8002 logberg-data
    logberg topics create counters --partitions 8 --replication-factor 1
    curl -L -X POST http://127.0.0.1:8001/apples

Broker 1 counts the keys of the partitions that it leads, and sends callers to broker 2 for the
others. Counts are in memory: a partition that gets another leader begins anew.
"""

import asyncio
import signal
import sys
import zlib
from collections import Counter

from aiohttp import web

import logberg as lb

TOPIC = "counters"


class Shards(lb.Duties):
    """The partitions that this process leads, with their counts."""

    def __init__(self) -> None:
        self.led: dict[lb.PartitionKey, Counter[str]] = {}

    def lead(self, partition: lb.PartitionKey, topic: str, leader_epoch: int) -> None:
        if topic == TOPIC:
            self.led.setdefault(partition, Counter())

    def follow(
        self, partition: lb.PartitionKey, topic: str, leader: int, leader_epoch: int
    ) -> None:
        self.led.pop(partition, None)

    def drop(self, partition: lb.PartitionKey) -> None:
        self.led.pop(partition, None)


def application(agent: lb.BrokerAgent, shards: Shards) -> web.Application:
    """The service's own HTTP interface."""

    async def count(request: web.Request) -> web.Response:
        key = request.match_info["key"]
        image = agent.image
        topic = image.topics.named(TOPIC)
        if topic is None or not agent.may_serve():
            raise web.HTTPServiceUnavailable(text=f"not now: {agent.health().reason}\n")
        numbers = image.topics.ids_of(topic.topic_id)
        shard = lb.PartitionKey(topic.topic_id, zlib.crc32(key.encode()) % len(numbers))
        if shard in shards.led:
            shards.led[shard][key] += 1
            return web.json_response({key: shards.led[shard][key]})
        leader = image.cluster.brokers.get(image.topics.partitions[shard].leader)
        if leader is None or leader.broker_id == agent.health().broker_id:
            raise web.HTTPServiceUnavailable(text="the partition has no leader yet\n")
        at = leader.end_points[0]
        raise web.HTTPTemporaryRedirect(f"http://{at.host}:{at.port}/{key}")

    app = web.Application()
    app.add_routes([web.post("/{key}", count)])
    return app


async def main(broker_id: int, port: int, folder: str) -> int:
    """Join the cluster, serve, leave."""
    cluster = lb.find_local_cluster(folder)
    config = lb.AgentConfig(
        cluster_id=cluster.cluster_id,
        broker_id=broker_id,
        controllers=cluster.controllers,
        endpoints=(lb.Endpoint("HTTP", "127.0.0.1", port),),
    )
    shards, tls = Shards(), cluster.broker_tls(broker_id)
    data = cluster.folder / f"counters-{broker_id}"
    async with lb.BrokerAgent(config, data=data, tls=tls, duties=shards) as agent:
        runner = web.AppRunner(application(agent, shards))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        ending = await lb.run_until_gone(agent, (signal.SIGTERM, signal.SIGINT), {})
        await runner.cleanup()
    return 0 if ending.orderly else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])))
