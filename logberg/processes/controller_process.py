"""A controller's process: connects a controller to sockets, files and signals.

Rule: a controller gets its real parts only here. If the node can't go on (a full disk, a failed
check), the process ends with exit code 74 and a sentence. SIGTERM and SIGINT stop it in order;
SIGHUP reloads tokens and certificates (`credential_reload`); SIGUSR1 and SIGUSR2 change the log's
level (`log_level`). In combined mode the process also runs a broker's agent (`broker_role`), which
ends before the controller. A service manager learns how the process is (`supervision`).
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from structlog.typing import FilteringBoundLogger

from controller.controller import Controller
from controller.http.routes import HEARTBEATS
from ledger.archive_place import Archive
from logberg.processes import node_figures, process_metrics
from logberg.processes.backup_process import ScheduledBackups
from logberg.processes.broker_role import EXIT_BROKER, BrokerRole
from logberg.processes.certificates_in_use import CertificatesInUse
from logberg.processes.cluster_key import load_cluster_key
from logberg.processes.controller_configs import controller_config, quorum_config
from logberg.processes.credential_reload import CredentialReload
from logberg.processes.disk_figures import DiskFigures
from logberg.processes.enforcement import is_new, with_enforcement
from logberg.processes.head_key import load_head_key
from logberg.processes.kafka_door import DOOR, KafkaDoor, controller_door
from logberg.processes.log_level import follow_signals
from logberg.processes.node_authority import load_authority
from logberg.processes.policy_loading import load_policies
from logberg.processes.principals import OPEN_PATHS, Principals, error_answer
from logberg.processes.settings.combined_settings import broker_settings
from logberg.processes.settings.controller_settings import ControllerSettings
from logberg.processes.settings.key_notes import KeyNote, log_notes
from logberg.processes.settings.settings_files import load, resolve
from logberg.processes.settings.shared_settings import host_and_port
from logberg.processes.settings.tracing_settings import tracer_for
from logberg.processes.supervision import supervised
from logberg.processes.tls_files import tls_files
from logberg.version import VERSION
from metadata.bucket_hash import SECRET_BYTES, key_buckets
from metadata.credentials import judged_by, may_expire
from quorum.api import Quorum, QuorumListener
from quorum.node import QuorumNode
from runtime import asyncio_clock
from runtime.clock import ThreadsafeClock
from runtime.defects import watch_loop
from runtime.disk.errors import BROKEN, NO_ROOM, sentence
from runtime.disk.real import RealDisk
from runtime.http.exposure import check_listener
from runtime.http.server import HttpServer
from runtime.links.tcp import TcpLinks
from runtime.logging import configure
from runtime.loop import collection, fair_loop
from runtime.loop.slice_meter import SliceMeter, name_long_callbacks
from runtime.metrics import Registry
from runtime.otlp import RequestTraces
from runtime.randomness import from_system
from runtime.service_manager import ServiceProgress
from runtime.sockets.descriptors import raise_limit
from runtime.sockets.judging import ConnectionJudge
from runtime.sockets.tls import peer_tls, server_context

if TYPE_CHECKING:
    from logberg.processes.witnesses import OpenWitnesses

EXIT_STOPPED = 74
"""EX_IOERR: the node stopped itself."""
_OF_A_DISK = {*BROKEN, *NO_ROOM}


class ControllerProcess:
    """One controller with its real parts."""

    def __init__(
        self,
        settings: ControllerSettings,
        config_file: Path,
        notes: tuple[KeyNote, ...] = (),
        read_again: Callable[[], ControllerSettings] | None = None,
    ) -> None:
        """`notes` are logged. `read_again` reads the settings at SIGHUP; else `config_file` is."""
        data = resolve(config_file, settings.data)
        self._locked_out = is_new(data) and not settings.super_users
        self._settings = settings = with_enforcement(settings, data)
        self._config_file = config_file
        self._log = configure(settings.log_level, node_id=settings.node_id)
        log_notes(notes, self._log)
        self._stopping = asyncio.Event()
        self._opened, self._why, self._broker_failed = False, "", ""
        clock, random = asyncio_clock.of_running_loop(), from_system()
        self._clock = clock
        key_buckets(random.randbytes(SECRET_BYTES))
        registry = Registry()
        self._slices = _shown_loop(registry)
        files = None if settings.tls is None else tls_files(settings.tls, config_file)
        certificates = CertificatesInUse(files)
        node_figures.declare(registry, certificates)
        own = settings.own()
        principals = Principals(
            settings.cluster_id, settings.tokens, lambda: self.controller.image, clock.wall_ms
        )
        host, port = host_and_port(own.quorum, "controllers.quorum")
        check_listener(host, tls=files is not None, insecure_network=settings.insecure_network)
        self._links = TcpLinks(
            settings.node_id,
            host,
            port,
            clock=clock,
            random=random,
            log=self._log,
            tls=None if files is None else peer_tls(files),
            certificate_problem=principals.certificate_problem,
        )
        self._broker = (
            None
            if settings.broker is None
            else BrokerRole(broker_settings(settings), config_file, self._log)
        )
        cluster_key = load_cluster_key(settings, config_file)
        if cluster_key is not None:
            self._log.info("cluster_key_loaded", key_id=cluster_key.id.hex())
        self._disk_figures = DiskFigures(
            data, clock, registry, settings.slow_sync_ms / 1000, self._log
        )
        disk = RealDisk(data, clock, on_synced=self._disk_figures.synced)

        def make_quorum(listener: QuorumListener) -> Quorum:
            return QuorumNode(
                quorum_config(settings),
                clock=clock,
                random=random,
                disk=disk,
                links=self._links,
                listener=listener,
                log=self._log,
            )

        config = controller_config(
            settings,
            cluster_key,
            load_head_key(settings, config_file),
            load_authority(settings, config_file),
        )
        self._witnesses = _witnesses_of(settings, config_file, clock, self._log)
        self._tracer = tracer_for(settings.tracing, settings.cluster_id, settings.node_id)
        self.controller = Controller(
            config,
            clock=clock,
            random=random,
            disk=disk,
            quorum_factory=make_quorum,
            log=self._log,
            version=VERSION,
            registry=registry,
            on_stopped=self._on_stopped,
            on_settled=collection.settled,
            policies=load_policies(settings),
            archive=_archive_of(settings, config_file, clock),
            tracing=None
            if self._tracer is None
            else RequestTraces(self._tracer, {"logberg.node_id": settings.node_id}),
            witnesses=() if self._witnesses is None else self._witnesses.witnesses,
        )
        address = host_and_port(own.http.partition("//")[2].rstrip("/"), "http")
        self._http = HttpServer(
            self.controller.handle,
            *address,
            authenticate=principals.authenticate,
            on_error=error_answer,
            log=self._log,
            tls=None if files is None else server_context(files),
            insecure_network=settings.insecure_network,
            unix_socket=None
            if settings.unix_socket is None
            else resolve(config_file, settings.unix_socket),
            hastened=(HEARTBEATS,),
            anonymous_paths=OPEN_PATHS if settings.require_authentication else None,
            refusals=self._links.refusals,
        )
        self._supervised = supervised(clock, self._progress, self._log)
        self._kafka: KafkaDoor | None = None
        if settings.kafka is not None:
            self._kafka = controller_door(
                settings.kafka,
                host_and_port(settings.kafka.listen, "kafka.listen"),
                self.controller,
                config,
                principals.authenticate,
                clock=clock,
                random=random,
                disk=disk,
                tls=None if files is None else server_context(files),
                insecure_network=settings.insecure_network,
                budget=self._http.budget,
                refusals=self._links.refusals,
                log=self._log,
            )
            self._kafka.show(registry)
        self._backups = (
            None
            if settings.backups is None
            else ScheduledBackups(
                settings,
                settings.backups,
                config_file,
                self.controller,
                clock,
                registry,
                self._log,
            )
        )
        doors = () if self._kafka is None else (self._kafka.server,)
        self._judge = ConnectionJudge(
            clock,
            lambda: judged_by(self.controller.image),
            lambda: may_expire(self.controller.image),
            lambda ended: self._log.info("connections_judged", ended=ended),
        )
        self._credential_reload = CredentialReload(
            settings,
            config_file,
            read_again or (lambda: load(config_file, ControllerSettings)),
            principals,
            (self._http, *doors),
            self._links,
            certificates,
            self._log,
        )
        process_metrics.declare(
            registry, lambda: self.controller.quorum, self._links.counters, self._http.counters
        )
        ports = {
            "http": self._http.admission,
            "quorum": self._links.strangers,
            "quorum_near_peers": self._links.near_peers,
        }
        if self._kafka is not None:
            ports[DOOR] = self._kafka.server.admission
        process_metrics.declare_doors(
            registry,
            ports,
            self._http.budget,
            self._links.refusals,
        )

    async def run(self) -> int:
        """Run until a signal or until the node stops itself. Returns the exit code."""
        loop = asyncio.get_running_loop()
        watch_loop(loop)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stopping.set)
        loop.add_signal_handler(signal.SIGHUP, self._reload)
        follow_signals(loop, self._settings.log_level)
        self._listen()
        try:
            self.controller.start()
        except Exception as error:
            # Close the listeners: a connection accepted from now on would outlive the loop.
            await self._stop_listening()
            self._end_supervision()
            if not isinstance(error, OSError) or error.errno not in _OF_A_DISK:
                raise
            self._on_stopped(_why_not(error))
            return EXIT_STOPPED
        self._opened = True
        self._disk_figures.begin()
        self._log.info("controller_started", version=VERSION)
        if self._settings.authorization != "on":
            self._log.warning("authorization_not_enforced", setting=self._settings.authorization)
        elif self._locked_out:
            self._log.warning("super_users_missing")
        if self._backups is not None:
            self._backups.begin()
        try:
            if self._broker is None:
                await self._stopping.wait()
            else:
                self._broker_failed = await self._broker.run(self._stopping)
                if self._broker_failed:
                    self._say_failed("broker", self._broker_failed)
        finally:
            await self._stop()
        if self._why:
            return EXIT_STOPPED
        return EXIT_BROKER if self._broker_failed else 0

    def _listen(self) -> None:
        """Begin to listen and to watch this process."""
        self._links.refusals.on_attempt = self.controller.note_attempt
        self._http.start()
        if self._kafka is not None:
            self._kafka.start()
        doors = () if self._kafka is None else (self._kafka.server,)
        self._judge.begin((self._http, *doors, self._links))
        if self._slices is not None:
            self._slices.watch_collector()
        if self._settings.name_long_callbacks:
            name_long_callbacks(self._on_long_callback)
        collection.keep_tended(self._clock)
        collection.loading()
        if self._supervised is not None:
            self._supervised.begin()

    async def _stop(self) -> None:
        if self._backups is not None:
            await self._backups.stop()
        try:
            self.controller.stop()
        except OSError as error:
            # Its last sync failed: what was promised is durable, but the disk is not sound.
            self._on_stopped(sentence(error, "leaving the folder"))
        await self._stop_listening()
        if self._tracer is not None:
            # It waits for the collector, and nothing else is left to do.
            self._tracer.close()
        reason = self._why or self._broker_failed or "asked to stop"
        self._log.info("controller_ended", reason=reason)
        self._end_supervision()

    def _end_supervision(self) -> None:
        if self._supervised is not None:
            self._supervised.end()

    def _progress(self) -> ServiceProgress:
        if self._stopping.is_set():
            return ServiceProgress(self.controller.loaded, stopping=True, status="stopping")
        if not self._opened:
            return ServiceProgress(ready=False, stopping=False, status="opening its folder")
        return ServiceProgress(
            self.controller.loaded, stopping=False, status=self.controller.health().reason
        )

    async def _stop_listening(self) -> None:
        self._judge.end()
        if self._kafka is not None:
            self._kafka.stop()
        await self._http.stop()
        if self._witnesses is not None:
            await self._witnesses.close()

    def _reload(self) -> None:
        if self._supervised is None:
            self._read_again()
        else:
            self._supervised.reload(self._read_again)

    def _read_again(self) -> None:
        self._credential_reload.reload()
        if self._broker is not None:
            self._broker.reload()

    def _on_stopped(self, reason: str) -> None:
        self._why = reason
        self._say_failed("controller", reason)
        self._stopping.set()

    def _say_failed(self, role: str, reason: str) -> None:
        sys.stderr.write(f"logberg {role}: {reason}\n")
        if self._broker is not None:
            self._log.error("role_failed", role=role, reason=reason)

    def _on_long_callback(self, name: str, seconds: float) -> None:
        self._log.warning("callback_long", callback=name, seconds=round(seconds, 4))


def _archive_of(
    settings: ControllerSettings, config_file: Path, clock: ThreadsafeClock
) -> Archive | None:
    if settings.archive is None:
        return None
    # A controller without an archive starts faster without this.
    from logberg.processes.archive_thread import ArchiveThread  # noqa: PLC0415

    where = settings.archive.to
    return ArchiveThread(where if "://" in where else str(resolve(config_file, where)), clock)


def _witnesses_of(
    settings: ControllerSettings,
    config_file: Path,
    clock: ThreadsafeClock,
    log: FilteringBoundLogger,
) -> "OpenWitnesses | None":
    if settings.witnesses is None:
        return None
    # A controller without witnesses starts faster without this.
    from logberg.processes.witnesses import OpenWitnesses  # noqa: PLC0415

    return OpenWitnesses(settings.witnesses, config_file, clock, log)


def _why_not(error: OSError) -> str:
    """Say why a node can't start on its disk; most who meet an error have said it already."""
    if error.errno is not None and error.strerror not in (None, os.strerror(error.errno)):
        return str(error.strerror)
    return sentence(error, f"opening {error.filename or 'the folder'}")


def run_controller(
    settings: ControllerSettings,
    config_file: Path,
    notes: tuple[KeyNote, ...] = (),
    read_again: Callable[[], ControllerSettings] | None = None,
) -> int:
    """Run a controller in the foreground; the arguments are those of `ControllerProcess`."""

    async def run() -> int:
        return await ControllerProcess(settings, config_file, notes, read_again).run()

    raise_limit()

    return fair_loop.run(run())


def _shown_loop(registry: Registry) -> SliceMeter | None:
    """Declare the figures of the running loop as metrics; return its slice meter."""
    meter = fair_loop.meter()
    for part in (fair_loop.stalls(), meter):
        if part is not None:
            part.show(registry)
    return meter
