"""The agent as a process of its own, beside a broker that is not written in Python.

Rule: SIGTERM and SIGINT begin a controlled shutdown, and SIGHUP reads the certificates anew. A
second SIGTERM changes nothing, since the shutdown is already in progress. The exit code is 0 after
an orderly end. It is 1, with the reason on stderr, if a controller refused the broker for good or a
limit of the shutdown passed.
"""

import signal
import ssl
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import structlog

from broker_agent.config import AgentConfig
from broker_agent.library import BrokerAgent, run_until_gone
from broker_agent.own_server import OwnServer
from broker_agent.states import BrokerState
from metadata.sealing import ClusterKey
from runtime.service_manager import ServiceProgress, Supervised

AGENT_ENDED = "agent_ended"
CERTIFICATES_RELOADED = "certificates_reloaded"
CERTIFICATES_NOT_RELOADED = "certificates_not_reloaded"


class AgentTls(NamedTuple):
    """The TLS context for connections to controllers, and that of the agent's own listener."""

    client: ssl.SSLContext
    server: ssl.SSLContext


async def run_broker(
    config: AgentConfig,
    *,
    data: Path,
    server: OwnServer,
    holds_no_data: bool = False,
    cluster_key: ClusterKey | None = None,
    read_tls: Callable[[], AgentTls] | None = None,
    supervise: Callable[[Callable[[], ServiceProgress]], Supervised | None] = lambda _look: None,
    log: structlog.typing.FilteringBoundLogger,
) -> int:
    """Run until a signal, or until a controller refuses the broker for good.

    Returns the exit code, 0 or 1. `cluster_key`: for the secrets that the host asks for over
    `server.host_socket`. `read_tls` reads the certificates, at the start and at each
    SIGHUP; it also gives `server.tls`. `supervise` gets what says how the agent is, and returns
    what reports that to a service manager. Raises what `BrokerAgent` and `read_tls` raise at the
    start.
    """
    tls = None if read_tls is None else read_tls()
    if tls is not None:
        server = server._replace(tls=tls.server)
    async with BrokerAgent(
        config,
        data=data,
        tls=None if tls is None else tls.client,
        holds_no_data=holds_no_data,
        cluster_key=cluster_key,
        server=server,
        log=log,
    ) as agent:
        reports = supervise(lambda: _progress(agent))

        def read_again() -> None:
            reload_certificates(agent, read_tls, log)

        def reload() -> None:
            if reports is None:
                read_again()
            else:
                reports.reload(read_again)

        if reports is not None:
            reports.begin()
        ending = await run_until_gone(
            agent, (signal.SIGTERM, signal.SIGINT), {signal.SIGHUP: reload}
        )
    log.info(AGENT_ENDED, reason=ending.reason, orderly=ending.orderly)
    if reports is not None:
        reports.end()
    if not ending.orderly:
        sys.stderr.write(f"logberg broker: {ending.reason}\n")
    return 0 if ending.orderly else 1


def _progress(agent: BrokerAgent) -> ServiceProgress:
    core = agent.core
    stopping = core.state in {BrokerState.STOPPING, BrokerState.GONE}
    return ServiceProgress(core.started, stopping, f"{core.state.value}: {core.reason}")


def reload_certificates(
    agent: BrokerAgent,
    read_tls: Callable[[], AgentTls] | None,
    log: structlog.typing.FilteringBoundLogger,
) -> None:
    """Read the certificates anew, as at SIGHUP; `read_tls` None: there are none."""
    if read_tls is None:
        return
    try:
        fresh = read_tls()
    except Exception as error:  # noqa: BLE001 - keep the old certificates on any error
        log.error(CERTIFICATES_NOT_RELOADED, why=str(error))
        return
    agent.reload_tls(fresh.client, fresh.server)
    log.info(CERTIFICATES_RELOADED)
