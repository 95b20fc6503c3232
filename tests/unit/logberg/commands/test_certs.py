"""`certs`: names that controllers judge by, renewal, dates, and what is refused."""

import datetime as dt
import json
import stat
from pathlib import Path

import pytest
from cryptography import x509

from logberg.local.local_ca import LocalCertificateAuthority
from runtime.sockets.tls import TlsFiles, client_context, server_context
from tests.unit.logberg.edge import Said, run_whole

ID = "a56gvmS4SxGveceV7e6XOQ"


def certs(*arguments: object) -> Said:
    return run_whole("certs", *map(str, arguments))


def create(folder: Path, *arguments: str) -> Said:
    return certs("create", folder, "--cluster-id", ID, *arguments)


def loaded(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def names(path: Path) -> tuple[list[str], list[str]]:
    extension = loaded(path).extensions.get_extension_for_class(x509.SubjectAlternativeName)
    found = extension.value
    hosts = found.get_values_for_type(x509.DNSName)
    hosts += map(str, found.get_values_for_type(x509.IPAddress))
    return found.get_values_for_type(x509.UniformResourceIdentifier), hosts


def test_create_makes_pairs_that_say_who_somebody_is(tmp_path: Path) -> None:
    said = create(
        tmp_path / "ca",
        "--controller",
        "1=c1.example,10.0.0.1",
        "--broker",
        "07",
        "--user",
        "alice",
    )
    assert said.code == 0, said
    folder = tmp_path / "ca"
    assert names(folder / "controller-1.crt") == (
        [f"quorum://{ID}/1"],
        ["c1.example", "10.0.0.1"],
    )
    assert names(folder / "broker-7.crt")[0] == [f"broker://{ID}/7"]
    assert names(folder / "user-alice.crt") == ([f"user://{ID}/alice"], [])
    for name in ("ca", "controller-1", "broker-7", "user-alice"):
        assert stat.S_IMODE((folder / f"{name}.key").stat().st_mode) == 0o600
    authority = loaded(folder / "ca.crt")
    for name in ("controller-1", "broker-7", "user-alice"):
        loaded(folder / f"{name}.crt").verify_directly_issued_by(authority)
    # They are what a process loads.
    files = TlsFiles(*(folder / f for f in ("controller-1.crt", "controller-1.key", "ca.crt")))
    server_context(files)
    client_context(files.ca, files)


def test_create_adds_to_an_authority_and_replaces_nothing(tmp_path: Path) -> None:
    assert create(tmp_path, "--controller", "1").code == 0
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    said = create(tmp_path, "--controller", "1", "--controller", "2")
    assert said.code == 1
    assert "certs renew" in said.err
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert create(tmp_path, "--controller", "2").code == 0
    assert (tmp_path / "ca.crt").read_bytes() == before["ca.crt"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "name a process or a user"),
        (("--controller", "one"), "--controller is 'one'"),
        (("--controller", "1="), "--controller is '1='"),
        (("--broker", "1=a b"), "--broker names 'a b'"),
        (("--user", "../x"), "--user is '../x'"),
    ],
)
def test_create_refuses_what_names_nobody(
    tmp_path: Path, arguments: tuple[str, ...], says: str
) -> None:
    said = create(tmp_path / "new", *arguments)
    assert said.code == 2
    assert says in said.err
    assert not (tmp_path / "new").exists()


def test_an_authority_of_another_cluster_or_without_its_key_is_refused(tmp_path: Path) -> None:
    assert create(tmp_path, "--controller", "1").code == 0
    other = certs("create", tmp_path, "--cluster-id", "BBBBBBBBBBBBBBBBBBBBBB", "--user", "a")
    assert other.code == 1
    assert "another cluster" in other.err
    (tmp_path / "ca.key").unlink()
    said = create(tmp_path, "--user", "a")
    assert said.code == 1
    assert "only one of ca.crt and ca.key" in said.err
    assert not (tmp_path / "user-a.crt").exists()


def old_folder(folder: Path, days_ago: int) -> None:
    then = dt.datetime.now(dt.UTC) - dt.timedelta(days=days_ago)
    authority = LocalCertificateAuthority(folder, ID, then)
    authority.issue_new("controller-1", f"quorum://{ID}/1", ("c1.example", "10.0.0.1"))


def test_an_authority_serves_no_cluster_whose_id_begins_alike(tmp_path: Path) -> None:
    assert create(tmp_path, "--controller", "1").code == 0
    other = certs("create", tmp_path, "--cluster-id", ID[:6], "--controller", "2")
    assert (other.code, "another cluster" in other.err) == (1, True)
    assert not (tmp_path / "controller-2.crt").exists()


def test_renew_makes_no_authority(tmp_path: Path) -> None:
    """On a node's machine there is none; what a new one signs, nobody trusts."""
    assert create(tmp_path / "ca", "--controller", "1").code == 0
    node = tmp_path / "node"
    node.mkdir()
    for name in ("controller-1.crt", "controller-1.key"):
        (node / name).write_bytes((tmp_path / "ca" / name).read_bytes())
    before = {path.name: path.read_bytes() for path in node.iterdir()}
    said = certs("renew", node, "--all")
    assert (said.code, "has no ca.key" in said.err) == (1, True)
    assert {path.name: path.read_bytes() for path in node.iterdir()} == before


def test_renew_touches_only_pairs_and_each_once(tmp_path: Path) -> None:
    assert create(tmp_path, "--controller", "1").code == 0
    pair = tmp_path / "controller-1.crt"
    joined = (tmp_path / "controller-1.key").read_bytes() + pair.read_bytes()
    (tmp_path / "joined.pem").write_bytes(joined)
    pair.write_bytes(pair.read_bytes() + (tmp_path / "ca.crt").read_bytes())
    said = certs("renew", tmp_path, "--all")
    assert said.code == 0, said.err
    assert "1 of 1 renewed" in said.out
    assert (tmp_path / "joined.pem").read_bytes() == joined
    assert not (tmp_path / "joined.crt").exists()


def test_renew_takes_what_expires_soon_and_keeps_its_names(tmp_path: Path) -> None:
    old_folder(tmp_path, 61)
    assert create(tmp_path, "--broker", "7").code == 0
    before = {
        name: (tmp_path / f"{name}.key").read_bytes() for name in ("controller-1", "broker-7")
    }
    said = certs("renew", tmp_path)
    assert said.code == 0, said
    assert "1 of 2 renewed" in said.out
    assert names(tmp_path / "controller-1.crt") == (
        [f"quorum://{ID}/1"],
        ["c1.example", "10.0.0.1"],
    )
    left = loaded(tmp_path / "controller-1.crt").not_valid_after_utc - dt.datetime.now(dt.UTC)
    assert dt.timedelta(days=89) < left <= dt.timedelta(days=90)
    assert (tmp_path / "controller-1.key").read_bytes() != before["controller-1"]
    assert (tmp_path / "broker-7.key").read_bytes() == before["broker-7"]
    assert "2 of 2 renewed" in certs("renew", tmp_path, "--all").out
    assert certs("renew", tmp_path / "nowhere").code == 1


def test_no_certificate_lives_longer_than_its_authority(tmp_path: Path) -> None:
    old_folder(tmp_path, 3600)
    certs("renew", tmp_path)
    assert (
        loaded(tmp_path / "controller-1.crt").not_valid_after_utc
        == loaded(tmp_path / "ca.crt").not_valid_after_utc
    )


def test_expiry_shows_the_first_one_first_and_warns(tmp_path: Path) -> None:
    old_folder(tmp_path, 80)
    assert create(tmp_path, "--broker", "7").code == 0
    said = certs("expiry", tmp_path)
    assert said.code == 1
    assert said.out.splitlines()[1].split()[1] == f"quorum://{ID}/1"
    assert "1 of 3 expire within 14 days" in said.err
    assert certs("expiry", tmp_path, "--within", "5").code == 0
    assert certs("expiry", tmp_path / "broker-7.crt").code == 0
    found = json.loads(certs("expiry", tmp_path, "-o", "json").out)
    assert [each["daysLeft"] for each in found] == sorted(each["daysLeft"] for each in found)
    assert 9.5 < found[0]["daysLeft"] <= 10
    assert [Path(each["file"]).name for each in found] == [
        "controller-1.crt",
        "broker-7.crt",
        "ca.crt",
    ]


@pytest.mark.parametrize("content", ["no certificate", ""])
def test_expiry_of_what_is_no_certificate_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "x.crt"
    path.write_text(content)
    for where in (path, tmp_path, tmp_path / "absent"):
        said = certs("expiry", where)
        assert said.code == 1
        assert "Traceback" not in said.err
        assert "can't be read" in said.err
