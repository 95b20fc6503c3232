"""What SIGHUP changes in a controller: tokens and certificates, without a restart.

Rule: the whole file is checked first. If anything in it is wrong, nothing changes and the log says
why. A removed credential stops working at once: the controller closes the connections that it
authenticated. Other settings take effect at the next start.
"""

import ssl
from collections.abc import Callable, Sequence
from pathlib import Path

from structlog.typing import FilteringBoundLogger

from logberg.processes.certificates_in_use import CertificatesInUse
from logberg.processes.principals import Principals
from logberg.processes.settings.controller_checks import check_controller
from logberg.processes.settings.controller_settings import ControllerSettings
from logberg.processes.settings.settings_files import SettingsError
from logberg.processes.tls_files import tls_files
from runtime.http.server import HttpServer
from runtime.links.tcp import TcpLinks
from runtime.sessions.server import SessionServer
from runtime.sockets.tls import PeerTls, peer_tls, server_context


class CredentialReload:
    """Reads a controller's file again."""

    def __init__(
        self,
        settings: ControllerSettings,
        config_file: Path,
        read: Callable[[], ControllerSettings],
        principals: Principals,
        doors: Sequence[HttpServer | SessionServer],
        links: TcpLinks,
        certificates: CertificatesInUse,
        log: FilteringBoundLogger,
    ) -> None:
        self._settings = settings
        self._config_file = config_file
        self._read_settings = read
        self._principals = principals
        self._doors = doors
        self._links = links
        self._certificates = certificates
        self._log = log

    def reload(self) -> None:
        """Apply the whole file, or nothing of it."""
        try:
            fresh = self._read()
            contexts = self._contexts(fresh)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with them, we go on
            self._log.error("certificates_not_reloaded", why=str(error))
            return
        before, now = set(self._settings.tokens), set(fresh.tokens)
        self._settings = fresh
        self._principals.set_tokens(fresh.tokens)
        ended = sum(door.judge_again() for door in self._doors)
        if before != now:
            self._log.info(
                "tokens_reloaded",
                added=len(now - before),
                removed=len(before - now),
                connections_ended=ended,
            )
        if contexts is not None:
            server, links = contexts
            for door in self._doors:
                door.reload_tls(server)
            self._links.set_tls(links)
            if fresh.tls is not None:
                self._certificates.loaded(tls_files(fresh.tls, self._config_file))
            self._log.info("certificates_reloaded")

    def _read(self) -> ControllerSettings:
        fresh = self._read_settings()
        if problems := check_controller(fresh):
            raise SettingsError(f"{self._config_file}: {' '.join(problems)}")
        if (fresh.tls is None) is not (self._settings.tls is None):
            raise SettingsError(
                f"{self._config_file}: TLS is turned on or off by a restart, not by SIGHUP"
            )
        return fresh

    def _contexts(self, fresh: ControllerSettings) -> tuple[ssl.SSLContext, PeerTls] | None:
        if fresh.tls is None:
            return None
        files = tls_files(fresh.tls, self._config_file)
        return server_context(files), peer_tls(files)
