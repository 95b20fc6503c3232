"""The certificates that a process has loaded, and when they expire.

Rule: the figures are those of the files at the moment when the process read them, at its start or
at SIGHUP. A file that was replaced and not loaded yet helps nobody. Its date must not hide that.
"""

from collections.abc import Mapping
from pathlib import Path

from cryptography import x509

from runtime.metrics import Registry
from runtime.sockets.tls import TlsFiles


def first_expiry(path: Path) -> float:
    """Return when the first of a file's certificates expires, in seconds since 1970.

    Raises OSError, ValueError.
    """
    found = x509.load_pem_x509_certificates(path.read_bytes())
    return min(certificate.not_valid_after_utc.timestamp() for certificate in found)


class CertificatesInUse:
    """When each file of a process's TLS expires."""

    def __init__(self, files: TlsFiles | None = None) -> None:
        """`files`: those that the process has loaded; None: none yet, or never."""
        self._expiries: dict[tuple[str, ...], float] = {}
        if files is not None:
            self.loaded(files)

    def loaded(self, files: TlsFiles) -> None:
        """Note that the process uses these files from now on.

        They were read by the caller just before. What can't be read any more keeps its old figure.
        """
        for name, path in (("cert", files.cert), ("ca", files.ca)):
            try:
                self._expiries[(name,)] = first_expiry(path)
            except (OSError, ValueError):
                continue

    def declare(self, registry: Registry) -> None:
        """Declare the figure."""
        registry.read_gauge(
            "logberg_certificate_expiry_seconds",
            "When the first certificate of a file expires, since 1970; as of its loading",
            self._read,
            ("file",),
        )

    def _read(self) -> Mapping[tuple[str, ...], float]:
        return self._expiries
