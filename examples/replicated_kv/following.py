"""A partition that this node follows: fetches from the leader, without end.

Rule: a follower's log is a copy of a beginning of the leader's. Each fetch names the end of the
follower's log and the epoch of its last entry. If the leader's log differs there, the leader names
the epoch up to which they may agree and where its own entries of it end. The follower cuts its log
back before it fetches more (KIP-595).
"""

import asyncio

import aiohttp

import logberg as lb
from examples.replicated_kv.partition_log import Entry, PartitionLog

WAIT_S = 0.5


async def follow(
    session: aiohttp.ClientSession,
    agent: lb.BrokerAgent,
    key: lb.PartitionKey,
    log: PartitionLog,
    leader: int,
    leader_epoch: int,
) -> None:
    """Fetch until the task is cancelled."""
    while True:
        broker = agent.image.cluster.brokers.get(leader)
        if broker is None:
            await asyncio.sleep(0.1)
            continue
        at = broker.end_points[0]
        health = agent.health()
        question = {
            "topicId": lb.uuid_text(key.topic_id),
            "partition": key.partition,
            "leaderEpoch": leader_epoch,
            "brokerId": health.broker_id,
            "brokerEpoch": health.broker_epoch,
            "end": log.end,
            "lastEpoch": log.last_epoch,
            "waitS": WAIT_S,
        }
        try:
            async with session.post(f"http://{at.host}:{at.port}/-/fetch", json=question) as reply:
                reply.raise_for_status()
                answer = await reply.json()
        except (aiohttp.ClientError, TimeoutError):
            # The leader is down, or has yet to learn that it leads.
            await asyncio.sleep(0.1)
            continue
        if answer["diverging"] is not None:
            cut_back(log, *answer["diverging"])
        else:
            log.append([Entry(*entry) for entry in answer["entries"]])


def cut_back(log: PartitionLog, epoch: int, end: int) -> None:
    """Cut to where the leader's entries of `epoch` end, or our own if they end sooner."""
    log.cut(min(end, log.end_of(epoch)[1]))
