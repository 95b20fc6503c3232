"""The broker's role in a controller's process (combined mode): the agent, its start and its end.

Rule (ADR 0035): the two roles of a node run and end together. The agent starts after the controller
and ends before it, by a controlled shutdown, so that the controllers can move the leaders. If
either role ends by itself, the process stops the other one in order, logs `role_failed`, and exits
with the code of the role that failed. A supervisor then starts the whole node again; an agent that
was refused could not register again in the same process.

An agent that can't register keeps trying, however long. Without a quorum no broker can register; if
the agents ended then, they would take the controllers down that are to form the quorum.

The agent asks the controllers over HTTP, also its own one: the active controller is often another.
"""

import asyncio
from pathlib import Path

import msgspec
from structlog.typing import FilteringBoundLogger

from broker_agent.library import BrokerAgent
from broker_agent.process import AgentTls, reload_certificates
from logberg.processes.broker_process import agent_parts
from logberg.processes.settings.broker_settings import BrokerSettings
from runtime.http.exposure import check_listener

EXIT_BROKER = 1
"""The exit code when the agent failed, as that of `logberg broker`."""
REGISTRATION_LIMIT_MS = 100 * 365 * 86_400_000
"""A hundred years: never."""


class BrokerRole:
    """The agent beside one controller."""

    def __init__(
        self, settings: BrokerSettings, config_file: Path, log: FilteringBoundLogger
    ) -> None:
        """Check everything that can be checked before the controller starts.

        Raises SettingsError, TlsFilesError, InsecureListenerError.
        """
        parts = agent_parts(settings, config_file)
        self._log = log = log.bind(broker_id=settings.broker_id)
        self._read_tls = parts.read_tls
        tls: AgentTls | None = None if parts.read_tls is None else parts.read_tls()
        check_listener(
            parts.server.host,
            tls=tls is not None,
            insecure_network=parts.server.insecure_network,
        )
        self._agent = BrokerAgent(
            msgspec.structs.replace(
                parts.config,
                registration_limit_ms=REGISTRATION_LIMIT_MS,
            ),
            data=parts.data,
            tls=None if tls is None else tls.client,
            holds_no_data=settings.holds_no_data,
            cluster_key=parts.cluster_key,
            server=parts.server._replace(tls=None if tls is None else tls.server),
            log=log,
        )

    async def run(self, stopping: asyncio.Event) -> str:
        """Run the agent until the node stops, then end it by a controlled shutdown.

        Returns why the agent failed; empty: it ended in order. Raises what `BrokerAgent` raises at
        its start.
        """
        async with self._agent as agent:
            self._log.info("broker_role_started")
            waits = [
                asyncio.ensure_future(agent.wait_gone()),
                asyncio.ensure_future(_set(stopping)),
            ]
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    wait.cancel()
            asked = agent.ending is None
            self._log.info("broker_role_ending", asked=asked)
            ending = await agent.stop()
        self._log.info("agent_ended", reason=ending.reason, orderly=ending.orderly)
        return "" if asked and ending.orderly else ending.reason

    def reload(self) -> None:
        """Read the broker's certificates anew."""
        reload_certificates(self._agent, self._read_tls, self._log)


async def _set(event: asyncio.Event) -> None:
    await event.wait()
