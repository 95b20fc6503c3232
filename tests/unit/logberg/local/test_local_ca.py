"""The small authority: names in certificates, private keys, renewal."""

import datetime as dt
import stat
from pathlib import Path

from cryptography import x509

from logberg.local.local_ca import LocalCertificateAuthority

NOW = dt.datetime(2026, 11, 21, tzinfo=dt.UTC)


def issue(folder: Path, now: dt.datetime = NOW) -> tuple[bytes, Path]:
    authority = LocalCertificateAuthority(folder, "cluster", now)
    certificate, key = authority.issue("broker-1", "broker://cluster/1")
    return certificate.read_bytes(), key


def test_a_certificate_names_who_it_is_for(tmp_path: Path) -> None:
    certificate = x509.load_pem_x509_certificate(issue(tmp_path)[0])
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.UniformResourceIdentifier) == ["broker://cluster/1"]
    authority = x509.load_pem_x509_certificate((tmp_path / "ca.crt").read_bytes())
    certificate.verify_directly_issued_by(authority)


def test_keys_are_readable_by_their_owner_only(tmp_path: Path) -> None:
    _, key = issue(tmp_path)
    for path in (key, tmp_path / "ca.key"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(tmp_path.stat().st_mode) & 0o077 == 0 or tmp_path.name != "certs"


def test_a_fresh_certificate_is_kept_and_an_old_one_renewed_by_the_same_authority(
    tmp_path: Path,
) -> None:
    first, _ = issue(tmp_path)
    same, _ = issue(tmp_path, NOW + dt.timedelta(days=59))
    renewed, _ = issue(tmp_path, NOW + dt.timedelta(days=61))
    assert same == first
    assert renewed != first
    authority = x509.load_pem_x509_certificate((tmp_path / "ca.crt").read_bytes())
    x509.load_pem_x509_certificate(renewed).verify_directly_issued_by(authority)
