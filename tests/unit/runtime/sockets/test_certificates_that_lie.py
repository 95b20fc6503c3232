"""Certificates that are not good: each is refused by whichever side it is shown to."""

import datetime as dt
import ssl
from pathlib import Path

import pytest
from cryptography.x509.oid import ExtendedKeyUsageOID

from runtime.sockets.tls import PeerTls, peer_tls
from tests.unit.runtime.certificates import DAY, Authority
from tests.unit.runtime.sockets.test_tls import handshake

URI = "logberg://c/controller/{}"
SIDES = pytest.mark.parametrize("who", ["client", "server"])


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def meet(ours: PeerTls, theirs: PeerTls, who: str) -> None:
    """Shake hands; `who`: the side that the second one takes."""
    if who == "client":
        handshake(ours.server, theirs.client)
    else:
        handshake(theirs.server, ours.client)


@SIDES
@pytest.mark.parametrize(
    ("since", "until", "why"),
    [
        (-2 * DAY, -dt.timedelta(minutes=1), "certificate has expired"),
        (dt.timedelta(minutes=5), DAY, "certificate is not yet valid"),
    ],
    ids=["expired", "not yet valid"],
)
def test_a_certificate_that_is_not_good_now_is_refused(
    authority: Authority, who: str, since: dt.timedelta, until: dt.timedelta, why: str
) -> None:
    ours = peer_tls(authority.issue(URI.format(1), "ours"))
    theirs = peer_tls(authority.issue(URI.format(2), "theirs", valid=(since, until)))
    with pytest.raises(ssl.SSLCertVerificationError, match=why):
        meet(ours, theirs, who)


@SIDES
def test_a_certificate_for_another_use_is_refused(authority: Authority, who: str) -> None:
    """A server's certificate is none of a client, and the other way round."""
    ours = peer_tls(authority.issue(URI.format(1), "ours"))
    uses = {"client": ExtendedKeyUsageOID.SERVER_AUTH, "server": ExtendedKeyUsageOID.CLIENT_AUTH}
    theirs = peer_tls(authority.issue(URI.format(2), "theirs", use=uses[who]))
    with pytest.raises(ssl.SSLCertVerificationError, match="unsuitable certificate purpose"):
        meet(ours, theirs, who)
    right = uses["server" if who == "client" else "client"]
    meet(ours, peer_tls(authority.issue(URI.format(2), "right", use=right)), who)


@SIDES
def test_an_authority_of_the_same_name_is_another_one(
    authority: Authority, tmp_path: Path, who: str
) -> None:
    ours = peer_tls(authority.issue(URI.format(1), "ours"))
    forged = Authority(tmp_path / "forged").issue(URI.format(2), "theirs")
    theirs = peer_tls(forged._replace(ca=authority.path))
    with pytest.raises(ssl.SSLCertVerificationError):
        meet(ours, theirs, who)


@SIDES
def test_a_node_signs_no_certificates(authority: Authority, tmp_path: Path, who: str) -> None:
    """Whoever stole a node's key makes a certificate of another node with it."""
    ours = peer_tls(authority.issue(URI.format(1), "ours"))
    stolen = authority.issue(URI.format(3), "stolen")
    forged = authority.issue_with(stolen, URI.format(2), "theirs")
    theirs = peer_tls(forged)
    with pytest.raises(ssl.SSLCertVerificationError):
        meet(ours, theirs, who)
