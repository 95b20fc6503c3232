"""The demonstration with Apache Kafka's own brokers and clients on our controllers.

What Kafka's producer and consumer report is taken from their own output. At the end the claims are
checked again from the files that the processes left.
"""

import asyncio
import secrets
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from rich.text import Text

from audit.questions.search import Filter, search
from audit.questions.touches import touches
from audit.reading.callers import caller
from kafka_listener.projection.clear_values import ClearValues
from logberg.client.client import LogbergClient
from logberg.client.cluster_key_file import read_cluster_key, with_subject_keys
from logberg.client.request_ids import new_request_id
from logberg.client.salting import salt_for, salted_password
from logberg.commands.demo_story import DemoStory, Line, Say, Step
from logberg.kafka.load import Load
from logberg.kafka.local_kafka import SCRAM, KafkaCluster
from logberg.kafka.metadata_logs import DifferentLogError, compare_brokers, digest_of, projected
from logberg.kafka.tools import KafkaTools
from logberg.local.cluster_file import CLUSTER_KEY_FILE
from metadata.messages.acls import AclEntry
from metadata.messages.scram import ScramUpsertion
from metadata.sealing import ClusterKey

TOPIC, PARTITIONS = "orders", 6
USER: Final = "alice"
_GROUPS: Final = "console-consumer"
"""Groups of Kafka's console consumer begin so."""
MESSAGES: Final = 4_000
PER_SECOND: Final = 400
_ITERATIONS: Final = 4_096
_BROKERS_LIMIT_S: Final = 120.0
_TOOL_LIMIT_S: Final = 60.0
_LOAD_LIMIT_S: Final = 120.0
_LOAD_POLL_S: Final = 0.1
_HERE: Final = "127.0.0.1"


class KafkaDemoSteps(DemoStory):
    """The story of Kafka's brokers."""

    def __init__(
        self, cluster: KafkaCluster, client: LogbergClient, say: Say, tools: KafkaTools
    ) -> None:
        super().__init__(cluster, client, say)
        self._kafka = cluster
        self._tools = tools
        self._load = Load(
            cluster.folder / "output",
            tools,
            cluster.scram_bootstrap,
            TOPIC,
            MESSAGES,
            PER_SECOND,
            self._login_file,
        )

    def steps(self) -> list[Step]:
        """What happens, in order."""
        return [
            self.controllers_agree,
            self.brokers_run,
            self.topic_is_created,
            self.messages_flow_and_the_leader_is_killed,
            self.no_message_is_lost,
            self.brokers_stayed_online,
            self.killed_controller_catches_up,
            self.everything_stops,
            self.logs_agree,
            self.states_agree,
            self.projections_agree,
            self.log_says_who,
        ]

    async def tell(self) -> None:
        """Run all steps. Raises as `DemoStory.tell`, and KafkaError."""
        try:
            await super().tell()
        finally:
            self._load.stop()

    # Steps.

    async def brokers_run(self) -> str:
        for broker in self._kafka.brokers.values():
            await asyncio.to_thread(broker.format, self._kafka.cluster_id)
            # Not in a thread: the kernel ends the broker with the thread that started it.
            broker.start()
        await self._until(
            lambda seen: (
                seen.is_ready(len(self._kafka.brokers))
                and all(broker.is_up for broker in self._kafka.brokers.values())
            ),
            "every broker of Kafka's is RUNNING",
            _BROKERS_LIMIT_S,
        )
        self._cluster.write_cluster_file()
        ids = ", ".join(map(str, self._kafka.brokers))
        return (
            f"Kafka {self._kafka.version}'s own brokers {ids} joined over mutual TLS: "
            "registered, caught up, RUNNING"
        )

    async def topic_is_created(self) -> str:
        await self._add_user()
        await self._grant()
        words = ["--create", "--topic", TOPIC, "--partitions", str(PARTITIONS)]
        words += ["--replication-factor", "3", "--command-config", str(self._login_file)]
        await self._run("kafka-topics", ["--bootstrap-server", self._kafka.scram_bootstrap, *words])
        spread = self._spread(await self._leaders(TOPIC))
        return (
            f"user {USER} logged in at a broker with a password from our log, and created topic "
            f"'{TOPIC}', which nobody else may use: {PARTITIONS} partitions, 3 replicas each, "
            f"leaders spread {spread}"
        )

    async def messages_flow_and_the_leader_is_killed(self) -> Line:
        self._load.start()
        await self._until_load(
            lambda: len(self._load.sent().acknowledged) >= MESSAGES // 4, "a quarter is sent"
        )
        before = len(self._load.sent().acknowledged)
        takeover = await self._kill_active()
        return (
            (
                f"controller {takeover.killed} killed with SIGKILL after {before:,} messages; "
                f"{takeover.now_active} took over and committed the next change "
            ),
            Text(f"{takeover.took_ms:.0f} ms", "bold"),
            " after the kill",
        )

    async def no_message_is_lost(self) -> Line:
        await self._until_load(lambda: self._load.over, "producer and consumer come to an end")
        sent, consumed = self._load.sent(), self._load.consumed()
        if sent.refused or sorted(sent.acknowledged) != list(range(MESSAGES)):
            self._fail(
                f"{len(sent.acknowledged)} of {MESSAGES} messages were acknowledged; "
                f"{len(sent.refused)} were refused, the first: {sent.refused[:1]}"
            )
        if sorted(consumed) != list(range(MESSAGES)):
            lost = sorted(set(sent.acknowledged) - set(consumed))
            self._fail(f"{len(lost)} acknowledged messages did not come out: {lost[:5]} …")
        return (
            (
                f"{MESSAGES:,} messages sent by Kafka's producer with acks=all, all acknowledged, "
                "and all consumed; the longest gap between two acknowledgements was "
            ),
            Text(f"{sent.longest_gap_ms} ms", "bold"),
        )

    async def projections_agree(self) -> str:
        key = read_cluster_key(self._cluster.folder / CLUSTER_KEY_FILE)
        try:
            end, digest, copies = await asyncio.to_thread(self._project, key)
        except DifferentLogError as error:
            self._fail(str(error))
        self.proof += ", one log for Kafka"
        shortest = min(copies.values())
        return (
            f"three logs as Kafka's brokers read them: {end} records, one digest, "
            f"{digest.hex()[:12]}…; the brokers' own copies are these bytes, up to offset "
            f"{shortest}"
        )

    async def log_says_who(self) -> str:
        replica = self._replicas()[0]
        reader = replica.reader()
        found = search(replica, reader, Filter(resources=(f"topic:{TOPIC}",)), 0, reader.log_end)
        # The first entry that names the topic is older: that of the user's right.
        newest = [each.header.provenance for each in touches(found, 1_000).newest]
        created = [each for each in newest if each.operation == "CreateTopics"]
        said = (created or newest)[-1]
        of_brokers = {f"Broker:{n}" for n in self._kafka.brokers}
        whole = (said.on_behalf_of, said.operation, said.client_address)
        if said.principal not in of_brokers or whole != (f"User:{USER}", "CreateTopics", _HERE):
            self._fail(f"the log says of topic {TOPIC}: {said}")
        who = caller(said.principal, said.on_behalf_of, said.auth_method, said.client_address)
        return f"the log says who created topic '{TOPIC}': {who}"

    # What the steps use.

    def _check_fencings(self, fenced: Sequence[tuple[int, int]]) -> None:
        """Read from the log itself: until the end nobody was fenced."""
        early = [(at, b) for at, b in fenced if at < self._before_stopping]
        if early:
            self._fail(f"brokers were fenced (offset, broker): {early}")

    async def _add_user(self) -> None:
        """Give the log a user, and Kafka's tools the user's password."""
        password, request_id = secrets.token_urlsafe(16), new_request_id()
        salt = salt_for(request_id, USER)
        salted = salted_password(SCRAM, password, salt, _ITERATIONS)
        wanted = ScramUpsertion(USER, SCRAM, _ITERATIONS, salt, salted)
        reply = await self._client.alter_scram(
            (wanted,), reason="a user of the demonstration", request_id=request_id
        )
        if reply.users[0].error is not None:
            self._fail(f"user {USER} was refused: {reply.users[0].error.message}")
        path = self._login_file
        path.touch(mode=0o600)
        path.write_text(
            f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={SCRAM}\n"
            "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required "
            f'username="{USER}" password="{password}";\n'
        )

    async def _grant(self) -> None:
        """Let the user create and use the topic, and read as a group of Kafka's tools."""
        user = f"User:{USER}"
        reply = await self._client.create_acls(
            AclEntry("TOPIC", TOPIC, user, "ALL"),
            AclEntry("GROUP", _GROUPS, user, "READ", pattern_type="PREFIXED"),
            reason="what the demonstration's user may do",
        )
        for each in reply.acls:
            if each.error is not None:
                self._fail(f"an entry was refused: {each.error.message}")

    @property
    def _login_file(self) -> Path:
        return self._cluster.folder / "config" / f"{USER}.properties"

    async def _run(self, tool: str, arguments: Sequence[str]) -> None:
        """Run one of Kafka's tools to its end."""
        process = await asyncio.create_subprocess_exec(
            *self._tools.command(tool, arguments),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            printed, _ = await asyncio.wait_for(process.communicate(), _TOOL_LIMIT_S)
        except TimeoutError:
            self._fail(f"{tool} did not end within {_TOOL_LIMIT_S:.0f} s")
        finally:
            if process.returncode is None:
                process.kill()
        if process.returncode != 0:
            said = printed.decode(errors="replace").strip().splitlines()
            self._fail(f"{tool} failed: {said[0] if said else 'no reason'}")

    async def _until_load(self, holds: Callable[[], bool], claim: str) -> None:
        until = time.monotonic() + _LOAD_LIMIT_S
        while not holds():
            producer = self._load.producer
            if producer.exit_code:
                self._fail(producer.obituary().rstrip())
            if self._load.over or time.monotonic() > until:
                self._fail(
                    f"{claim}: not so. {len(self._load.sent().acknowledged)} messages are "
                    f"acknowledged, {len(self._load.consumed())} consumed"
                )
            self._cluster.check_alive()
            await asyncio.sleep(_LOAD_POLL_S)

    def _project(self, key: ClusterKey) -> tuple[int, bytes, dict[int, int]]:
        """Return end and digest of the projected logs, and how far each broker's copy goes.

        Raises DifferentLogError, LedgerError, OSError.
        """
        replicas = list(self._replicas())
        readers = [replica.reader() for replica in replicas]
        key = with_subject_keys(key, replicas[0].disk)
        found = {digest_of(reader, key) for reader in readers}
        if len(found) != 1:
            raise DifferentLogError(f"the controllers' projected logs differ: {found}")
        folders = {n: broker.folder / "data" for n, broker in self._kafka.brokers.items()}
        (one,) = found
        return (
            one.end,
            one.digest,
            compare_brokers(projected(readers[0], ClearValues(key)), folders),
        )
