"""A witness's process: connects a witness to its listener, its folder and signals.

Rule: it listens beyond this machine only with TLS, as a controller does. SIGTERM and SIGINT stop
it; SIGHUP reads the logs and their keys again. Who calls is not asked:
what a log submits is judged by the log's signatures. A disk that fails ends the process with exit
code 74, because what is durable is not known any more.
"""

import asyncio
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from logberg.processes.settings.settings_files import SettingsError, resolve
from logberg.processes.settings.shared_settings import host_and_port
from logberg.processes.supervision import supervised
from logberg.version import VERSION
from logberg.witness.answering import WitnessAnswers
from logberg.witness.settings import WitnessSettings, open_folder, witnessed_logs
from logberg.witness.witness import TEXT, Witness
from runtime import asyncio_clock
from runtime.defects import watch_loop
from runtime.disk.real import RealDisk
from runtime.http.requests import ANONYMOUS, Caller, Reply
from runtime.http.server import HttpServer
from runtime.logging import configure
from runtime.service_manager import ServiceProgress
from runtime.sockets.descriptors import raise_limit
from runtime.sockets.refusals import Refusals
from runtime.sockets.tls import page_context

EXIT_STOPPED: Final = 74
"""EX_IOERR: the witness stopped itself."""


def run_witness(
    settings: WitnessSettings, config_file: Path, read_again: Callable[[], WitnessSettings]
) -> int:
    """Run a witness in the foreground. Returns the exit code.

    `read_again` reads the settings at SIGHUP; of them only the logs are taken.
    Raises SettingsError, FolderInUseError, InsecureListenerError, TlsFilesError, OSError.
    """
    raise_limit()
    return asyncio.run(_run(settings, config_file, read_again))


async def _run(
    settings: WitnessSettings, config_file: Path, read_again: Callable[[], WitnessSettings]
) -> int:
    loop = asyncio.get_running_loop()
    watch_loop(loop)
    logs = witnessed_logs(settings, config_file)
    log = configure(settings.log_level, witness=settings.name)
    host, port = host_and_port(settings.listen, "listen")
    clock = asyncio_clock.of_running_loop()
    stopping, why = asyncio.Event(), [""]

    def on_failed(sentence: str) -> None:
        why[0] = sentence
        stopping.set()

    disk = RealDisk(resolve(config_file, settings.data), clock)
    key, state = open_folder(settings.name, disk)
    try:
        witness = Witness(key, logs, state, lambda: clock.wall_ms() // 1000)
        refusals = Refusals(log, loop.call_later)
        answers = WitnessAnswers(witness, state, disk, on_failed, refusals, log)
        tls = settings.tls
        server = HttpServer(
            answers.handle,
            host,
            port,
            authenticate=_anybody,
            on_error=_refused,
            log=log,
            tls=None
            if tls is None
            else page_context(resolve(config_file, tls.cert), resolve(config_file, tls.key)),
            insecure_network=settings.insecure_network,
            refusals=refusals,
        )
        server.start()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stopping.set)

        def reload() -> None:
            try:
                witness.set_logs(witnessed_logs(read_again(), config_file))
            except SettingsError as error:
                log.error("witness_not_reloaded", why=str(error))
            else:
                log.info("witness_reloaded")

        loop.add_signal_handler(signal.SIGHUP, reload)
        reports = supervised(clock, lambda: _progress(stopping), log)
        if reports is not None:
            reports.begin()
        log.info(
            "witness_started",
            version=VERSION,
            key=witness.public.text,
            logs=[one.origin for one in logs],
        )
        try:
            await stopping.wait()
        finally:
            await server.stop()
            if reports is not None:
                reports.end()
    finally:
        disk.close()
    log.info("witness_ended", reason=why[0] or "asked to stop")
    if why[0]:
        sys.stderr.write(f"logberg witness: {why[0]}\n")
    return EXIT_STOPPED if why[0] else 0


def _progress(stopping: asyncio.Event) -> ServiceProgress:
    return ServiceProgress(ready=True, stopping=stopping.is_set(), status="cosigning")


def _anybody(*caller: object) -> Caller | Reply:
    """Believe nobody and refuse nobody; the last one of `caller` is the address."""
    address = str(caller[-1])
    return Caller(ANONYMOUS.principal, ANONYMOUS.method, address)


def _refused(status: int, code: str, message: str) -> Reply:
    return Reply(status, f"{code}: {message}\n".encode(), {"content-type": TEXT})
