"""Run a node: `python -m examples.replicated_kv BROKER_ID PORT CLUSTER_FOLDER`."""

import asyncio
import signal
import sys

from aiohttp import web

import logberg as lb
from examples.replicated_kv.service import Node


async def main(broker_id: int, port: int, folder: str) -> int:
    """Join the cluster, serve, leave."""
    cluster = lb.find_local_cluster(folder)
    config = lb.AgentConfig(
        cluster_id=cluster.cluster_id,
        broker_id=broker_id,
        controllers=cluster.controllers,
        endpoints=(lb.Endpoint("HTTP", "127.0.0.1", port),),
    )
    data = cluster.folder / f"kv-{broker_id}"
    node = Node(data / "partitions")
    node.agent = lb.BrokerAgent(
        config,
        data=data / "agent",
        tls=cluster.broker_tls(broker_id),
        duties=node,
        on_isr=node.on_isr,
    )
    async with node.agent as agent:
        # Clients keep connections open; those that wait for a write were answered by `close`.
        runner = web.AppRunner(node.application(), shutdown_timeout=2.0)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        judging = asyncio.create_task(node.judge_for_ever())
        ending = await lb.run_until_gone(agent, (signal.SIGTERM, signal.SIGINT), {})
        judging.cancel()
        await node.close()
        await runner.cleanup()
    return 0 if ending.orderly else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])))
