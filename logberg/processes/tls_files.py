"""From a configuration's [tls] to the files that runtime reads."""

from pathlib import Path

from logberg.processes.settings.settings_files import resolve
from logberg.processes.settings.shared_settings import Tls
from runtime.sockets.tls import TlsFiles


def tls_files(tls: Tls, config_file: Path) -> TlsFiles:
    """Return the paths, relative ones taken from the configuration file's folder."""
    return TlsFiles(
        resolve(config_file, tls.cert), resolve(config_file, tls.key), resolve(config_file, tls.ca)
    )
