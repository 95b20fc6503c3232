"""A controller's witnesses, as its settings name them, and the connections to them.

Rule: a witness that doesn't answer is no reason not to start.
"""

import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from structlog.typing import FilteringBoundLogger

from controller.signing.head_drop import HeadDrop
from controller.signing.http_witness import HttpWitness
from controller.signing.witnessing import HeadWitness
from ledger.merkle.notes import NoteKey
from logberg.processes.head_places import HeadPlaceThread
from logberg.processes.settings.settings_files import resolve
from logberg.processes.settings.witness_settings import WitnessesSettings
from runtime.clock import ThreadsafeClock
from runtime.http.client import HttpRequester
from runtime.sockets.tls import client_context

_ANSWER_BYTES_MAX: Final = 2_000_000


class OpenWitnesses:
    """A controller's witnesses, and the connections to them. To be made on a running loop."""

    def __init__(
        self,
        settings: WitnessesSettings,
        config_file: Path,
        clock: ThreadsafeClock,
        log: FilteringBoundLogger,
    ) -> None:
        """Raises TlsFilesError."""
        self._requesters: dict[str | None, HttpRequester] = {}
        found: list[HeadWitness] = []
        for server in settings.servers:
            requester = self._requester(server.ca, config_file, log)
            key = NoteKey.parse(server.key)
            found.append(HttpWitness(server.url.rstrip("/"), key, requester, clock))
        for place in settings.places:
            where = place.to if "://" in place.to else str(resolve(config_file, place.to))
            drop = HeadPlaceThread(where, place.lock_days, clock)
            found.append(HeadDrop(drop, place.every_ms / 1000, clock))
        self.witnesses: Sequence[HeadWitness] = found

    def _requester(
        self, ca: str | None, config_file: Path, log: FilteringBoundLogger
    ) -> HttpRequester:
        if ca not in self._requesters:
            tls = (
                ssl.create_default_context()
                if ca is None
                else client_context(resolve(config_file, ca))
            )
            self._requesters[ca] = HttpRequester(
                log=log, tls=tls, answer_bytes_max=_ANSWER_BYTES_MAX
            )
        return self._requesters[ca]

    async def close(self) -> None:
        """Abandon what is under way."""
        for requester in self._requesters.values():
            await requester.close()
