"""The agent as a process of its own, beside a broker that is not written in Python.

Rule: SIGTERM and SIGINT begin a controlled shutdown, SIGHUP reads certificates anew; a second
SIGTERM changes nothing, since the shutdown is already in progress. The exit code is 0 after an
orderly end, and 1 if the broker was expelled or its time ran out, with the reason on stderr.
"""

import signal
import ssl
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import structlog

from broker_agent.config import AgentConfig
from broker_agent.library import BrokerAgent, OwnServer, run_until_gone

AGENT_ENDED = "agent_ended"
CERTIFICATES_RELOADED = "certificates_reloaded"
CERTIFICATES_NOT_RELOADED = "certificates_not_reloaded"


class AgentTls(NamedTuple):
    """Contexts towards controllers, and for the agent's own listener."""

    client: ssl.SSLContext
    server: ssl.SSLContext


async def run_broker(
    config: AgentConfig,
    *,
    data: Path,
    server: OwnServer,
    read_tls: Callable[[], AgentTls] | None = None,
    log: structlog.typing.FilteringBoundLogger,
) -> int:
    """Run until a signal, or until the cluster has no place for us. Returns the exit code.

    `read_tls` reads the certificates, now and at each SIGHUP; `server.tls` is taken from it.
    Raises what `BrokerAgent` and `read_tls` raise at the start.
    """
    tls = None if read_tls is None else read_tls()
    if tls is not None:
        server = server._replace(tls=tls.server)
    async with BrokerAgent(
        config, data=data, tls=None if tls is None else tls.client, server=server, log=log
    ) as agent:

        def reload() -> None:
            if read_tls is None:
                return
            try:
                fresh = read_tls()
            except Exception as error:  # noqa: BLE001 - whatever is wrong with them, we go on
                log.error(CERTIFICATES_NOT_RELOADED, why=str(error))
                return
            agent.reload_tls(fresh.client, fresh.server)
            log.info(CERTIFICATES_RELOADED)

        ending = await run_until_gone(
            agent, (signal.SIGTERM, signal.SIGINT), {signal.SIGHUP: reload}
        )
    log.info(AGENT_ENDED, reason=ending.reason, orderly=ending.orderly)
    if not ending.orderly:
        sys.stderr.write(f"logberg broker: {ending.reason}\n")
    return 0 if ending.orderly else 1
