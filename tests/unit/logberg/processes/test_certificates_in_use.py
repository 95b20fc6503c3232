"""Expiry of certificates: of the first in a file, as of its loading."""

import datetime as dt
from pathlib import Path

import pytest

from logberg.local.local_ca import LocalCertificateAuthority
from logberg.operating.samples import Samples
from logberg.processes.certificates_in_use import CertificatesInUse, first_expiry
from runtime.metrics import Registry
from runtime.sockets.tls import TlsFiles

NOW = dt.datetime(2026, 11, 21, tzinfo=dt.UTC)
DAY = 86_400


def issued(folder: Path, now: dt.datetime = NOW) -> TlsFiles:
    authority = LocalCertificateAuthority(folder, "cluster", now)
    certificate, key = authority.issue("controller-1", "quorum://cluster/1")
    return TlsFiles(certificate, key, authority.ca_path)


def shown(certificates: CertificatesInUse) -> dict[str, float]:
    registry = Registry()
    certificates.declare(registry)
    found = Samples(registry.render().decode()).all("logberg_certificate_expiry_seconds")
    return {sample.labels["file"]: sample.value for sample in found}


def test_the_figures_are_those_of_the_moment_of_loading(tmp_path: Path) -> None:
    certificates = CertificatesInUse()
    assert shown(certificates) == {}
    certificates.loaded(issued(tmp_path))
    first = shown(certificates)
    assert first == {
        "cert": NOW.timestamp() + 90 * DAY,
        "ca": NOW.timestamp() + 3650 * DAY,
    }
    later = issued(tmp_path, NOW + dt.timedelta(days=80))
    assert shown(certificates) == first
    certificates.loaded(later)
    assert shown(certificates)["cert"] == NOW.timestamp() + 170 * DAY


def test_of_several_certificates_the_first_to_expire_counts(tmp_path: Path) -> None:
    files = issued(tmp_path)
    both = tmp_path / "both.crt"
    both.write_bytes(files.ca.read_bytes() + files.cert.read_bytes())
    assert first_expiry(both) == NOW.timestamp() + 90 * DAY


def test_a_file_that_can_not_be_read_any_more_keeps_its_figure(tmp_path: Path) -> None:
    certificates, files = CertificatesInUse(), issued(tmp_path)
    certificates.loaded(files)
    before = shown(certificates)
    files.cert.write_text("no certificate")
    files.ca.unlink()
    certificates.loaded(files)
    assert shown(certificates) == before
    with pytest.raises(ValueError, match=r"."):
        first_expiry(files.cert)
