"""TLS contexts from files, and the name in a peer's certificate.

Rule: TLS 1.3 only. Between controllers, both sides show a certificate of the cluster's own CA. The
HTTP listener asks clients for a certificate, but accepts a token instead. A peer is identified by
the URI in its certificate's subject alternative names, not by its address. So TLS checks no host
name between peers, and the handler of the links checks the URI. A certificate with several URIs
identifies nobody.

A key file that other users of the machine can read is refused, because it is not secret.
"""

import ssl
import stat
from asyncio import sslproto
from pathlib import Path
from typing import NamedTuple

from runtime.sockets.credentials import PeerCertificate

BUFFER_BYTES = 32 * 1024
"""The size of asyncio's read buffer for each TLS connection: two TLS records. asyncio's own 256 KiB
cost 310 KB of memory for each connection, this size 85 KB (measured, 500 connections)."""
sslproto.SSLProtocol.max_size = BUFFER_BYTES


class TlsFilesError(Exception):
    """A TLS file cannot be used; the message names the file and says what to do."""


class SeveralUrisError(Exception):
    """A certificate has more than one URI; the message says what to do."""


class TlsFiles(NamedTuple):
    """The paths of three PEM files."""

    cert: Path
    """Our certificate, followed by intermediate ones."""
    key: Path
    ca: Path
    """The CA certificates. One of them must have signed the other side's certificate."""


class PeerTls(NamedTuple):
    """The contexts of a node that both dials and accepts connections."""

    server: ssl.SSLContext
    client: ssl.SSLContext


def peer_tls(files: TlsFiles) -> PeerTls:
    """Return contexts for links between controllers: both sides must show a certificate.

    Raises TlsFilesError, as do all functions here that make a context.
    """
    server = server_context(files, client_certificate_required=True)
    return PeerTls(server, client_context(files.ca, files, check_hostname=False))


def server_context(files: TlsFiles, *, client_certificate_required: bool = False) -> ssl.SSLContext:
    """Return the context of an HTTP server.

    The server always asks a client for a certificate. If the client shows one, our CA must have
    signed it.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = ssl.CERT_REQUIRED if client_certificate_required else ssl.CERT_OPTIONAL
    _load(context, files)
    return context


def page_context(cert: Path, key: Path) -> ssl.SSLContext:
    """Return the context of a server of pages, which asks browsers for no certificate.

    Browsers that know only TLS 1.2 are refused. Raises TlsFilesError.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _load_own(context, cert, key)
    return context


def client_context(
    ca: Path, files: TlsFiles | None = None, *, check_hostname: bool = True
) -> ssl.SSLContext:
    """Return the context of a client that trusts only `ca`.

    With `files` the client shows their certificate.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = check_hostname
    context.verify_mode = ssl.CERT_REQUIRED
    if files is None:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        _load_ca(context, ca)
    else:
        _load(context, files._replace(ca=ca))
    return context


def certificate_of_peer(connection: ssl.SSLObject | None) -> PeerCertificate | None:
    """Return the other side's verified certificate; None: it showed none, or it names nobody.

    Raises SeveralUrisError, because it would be a guess which of several URIs is meant.
    """
    certificate = None if connection is None else connection.getpeercert()
    if not certificate:
        return None
    names = certificate.get("subjectAltName", ())
    assert isinstance(names, tuple)
    uris = [str(name[1]) for name in names if name[0] == "URI"]
    if len(uris) > 1:
        raise SeveralUrisError(
            f"the certificate has {len(uris)} URIs among its alternative names "
            f"({', '.join(uris)[:200]!r}), so whom it is for is not clear: show one with one URI"
        )
    if not uris:
        return None
    return PeerCertificate(
        uris[0], str(certificate.get("serialNumber", "")), str(certificate.get("notBefore", ""))
    )


def uri_of_peer(connection: ssl.SSLObject | None) -> str | None:
    """Return the URI in the other side's verified certificate; None if it showed none.

    Raises SeveralUrisError.
    """
    found = certificate_of_peer(connection)
    return None if found is None else found.uri


def trusts_others(before: ssl.SSLContext | None, now: ssl.SSLContext) -> bool:
    """Tell whether two contexts trust different authorities."""
    if before is None:
        return True
    return set(before.get_ca_certs(binary_form=True)) != set(now.get_ca_certs(binary_form=True))


def _load(context: ssl.SSLContext, files: TlsFiles) -> None:
    _load_own(context, files.cert, files.key)
    _load_ca(context, files.ca)


def _load_own(context: ssl.SSLContext, cert: Path, key: Path) -> None:
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    _check_key(key)
    _check_readable(cert, "certificate")
    try:
        # Without a password function OpenSSL would ask the terminal.
        context.load_cert_chain(cert, key, password=lambda: "")
    except (ssl.SSLError, OSError) as error:
        raise TlsFilesError(
            f"the certificate {cert} and the key {key} cannot be used together: "
            f"{error}. Both must be PEM files, the key without a password and of this certificate"
        ) from None


def _load_ca(context: ssl.SSLContext, ca: Path) -> None:
    _check_readable(ca, "CA file")
    try:
        context.load_verify_locations(ca)
    except (ssl.SSLError, OSError) as error:
        raise TlsFilesError(
            f"the CA file {ca} holds no usable certificate in PEM form: {error}"
        ) from None


def _check_readable(path: Path, what: str) -> None:
    try:
        with path.open("rb"):
            return
    except OSError as error:
        raise TlsFilesError(f"the {what} {path} cannot be read: {error.strerror}") from None


def _check_key(path: Path) -> None:
    _check_readable(path, "private key")
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        raise TlsFilesError(
            f"the private key {path} can be read by others (mode {mode:04o}): "
            f"run chmod 600 {path}, and replace the key if others may have read it"
        )
