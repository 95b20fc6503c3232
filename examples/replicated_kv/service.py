"""The node: does what the cluster asks of this broker, and serves clients over HTTP.

`PUT /KEY` and `GET /KEY` are answered by the leader of the key's partition; other nodes redirect.
`GET /-/partitions` tells what this node leads. `POST /-/fetch` is for followers.
"""

import asyncio
import zlib
from pathlib import Path

import aiohttp
from aiohttp import web

import logberg as lb
from examples.replicated_kv.following import follow
from examples.replicated_kv.leading import Leading, NotNowError
from examples.replicated_kv.partition_log import PartitionLog

TOPIC = "kv"
JUDGE_EVERY_S = 0.5


class Node(lb.Duties):
    """The partitions of one process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.agent: lb.BrokerAgent
        self.led: dict[lb.PartitionKey, Leading] = {}
        self._logs: dict[lb.PartitionKey, PartitionLog] = {}
        self._following: dict[lb.PartitionKey, asyncio.Task[None]] = {}
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5.0))

    # What the agent calls.

    def lead(self, partition: lb.PartitionKey, topic: str, leader_epoch: int) -> None:
        if topic == TOPIC:
            self._leave(partition)
            log = self._log(partition)
            self.led[partition] = Leading(self.agent, partition, log, leader_epoch)

    def follow(
        self, partition: lb.PartitionKey, topic: str, leader: int, leader_epoch: int
    ) -> None:
        if topic == TOPIC:
            self._leave(partition)
            log = self._log(partition)
            work = follow(self._session, self.agent, partition, log, leader, leader_epoch)
            self._following[partition] = asyncio.create_task(work)

    def drop(self, partition: lb.PartitionKey) -> None:
        self._leave(partition)
        if partition in self._logs:
            self._logs.pop(partition).close()

    def on_isr(self, partition: lb.PartitionKey) -> None:
        """A controller has answered: perhaps more is committed now."""
        if partition in self.led:
            self.led[partition].advance()

    def _leave(self, partition: lb.PartitionKey) -> None:
        if partition in self.led:
            self.led.pop(partition).end()
        if partition in self._following:
            self._following.pop(partition).cancel()

    def _log(self, partition: lb.PartitionKey) -> PartitionLog:
        if partition not in self._logs:
            name = f"{lb.uuid_text(partition.topic_id)}-{partition.partition}.log"
            self._logs[partition] = PartitionLog(self._folder / name)
        return self._logs[partition]

    async def judge_for_ever(self) -> None:
        """Look for followers that lag."""
        while True:
            for leading in list(self.led.values()):
                leading.judge()
                leading.advance()
            await asyncio.sleep(JUDGE_EVERY_S)

    async def close(self) -> None:
        """End what is under way."""
        for partition in (*self.led, *self._following):
            self._leave(partition)
        await self._session.close()

    # What clients and followers call.

    def application(self) -> web.Application:
        """The HTTP interface."""
        app = web.Application()
        app.add_routes(
            [
                web.get("/-/partitions", self._partitions),
                web.post("/-/fetch", self._fetch),
                web.put("/{key}", self._put),
                web.get("/{key}", self._get),
            ]
        )
        return app

    def _leading(self, key: str) -> Leading:
        """Return the key's partition if this node leads it; else send the caller to its leader."""
        image = self.agent.image
        topic = image.topics.named(TOPIC)
        if topic is None or not self.agent.may_serve():
            raise web.HTTPServiceUnavailable(text=f"not now: {self.agent.health().reason}\n")
        numbers = image.topics.ids_of(topic.topic_id)
        partition = lb.PartitionKey(topic.topic_id, zlib.crc32(key.encode()) % len(numbers))
        if partition in self.led:
            return self.led[partition]
        leader = image.cluster.brokers.get(image.topics.partitions[partition].leader)
        if leader is None or leader.broker_id == self.agent.health().broker_id:
            raise web.HTTPServiceUnavailable(text="the partition has no leader yet\n")
        at = leader.end_points[0]
        raise web.HTTPTemporaryRedirect(f"http://{at.host}:{at.port}/{key}")

    async def _put(self, request: web.Request) -> web.Response:
        key = request.match_info["key"]
        try:
            offset = await self._leading(key).put(key, await request.text())
        except (NotNowError, TimeoutError) as error:
            raise web.HTTPServiceUnavailable(text=f"unknown outcome: {error}\n") from None
        return web.json_response({"offset": offset})

    async def _get(self, request: web.Request) -> web.Response:
        key = request.match_info["key"]
        try:
            value = self._leading(key).get(key)
        except NotNowError as error:
            raise web.HTTPServiceUnavailable(text=f"not now: {error}\n") from None
        if value is None:
            raise web.HTTPNotFound(text=f"there is no {key}\n")
        return web.Response(text=value)

    async def _fetch(self, request: web.Request) -> web.Response:
        asked = await request.json()
        partition = lb.PartitionKey(lb.parse_uuid(asked["topicId"]), asked["partition"])
        leading = self.led.get(partition)
        if leading is None or leading.epoch != asked["leaderEpoch"]:
            raise web.HTTPConflict(text="this node doesn't lead in that epoch\n")
        diverging, entries = await leading.fetch(
            asked["brokerId"],
            asked["brokerEpoch"],
            asked["end"],
            asked["lastEpoch"],
            asked["waitS"],
        )
        return web.json_response({"diverging": diverging, "entries": entries})

    async def _partitions(self, request: web.Request) -> web.Response:
        led = {
            partition.partition: {
                "epoch": leading.epoch,
                "highWatermark": leading.high_watermark,
                "isr": state.isr,
            }
            for partition, leading in sorted(self.led.items())
            if (state := self.agent.isr.of(partition)) is not None
        }
        return web.json_response(led)
