"""The credentials of a client, and which servers get them: token, certificate, CA.

Rule: a token leaves only over a TLS connection whose other side has proved to be a controller
(`runtime.sockets.peer_proof`), of the token's own cluster where that is known. A token goes over
plain HTTP only if the caller allowed it, and only to a server that the caller named.
"""

import ssl
from pathlib import Path

import msgspec

from runtime.sockets.peer_proof import ControllerProof
from runtime.sockets.tls import TlsFiles, client_context

PLAIN = "http://"
IN_CLEAR = "--send-token-in-clear"


class AccessError(Exception):
    """A token, a certificate or a CA can't be used; the message says why and what to do."""


class Access(msgspec.Struct, frozen=True):
    """The credentials of a client."""

    token: str | None = None
    ca: str | None = None
    cert: str | None = None
    key: str | None = None
    cluster_id: str | None = None
    """The cluster that the token is for; None: of the first one that proves itself."""
    token_in_clear: bool = False
    """Send the token also over plain HTTP, to the servers that the caller named."""

    def context(self) -> ssl.SSLContext:
        """The TLS context; without a CA it trusts the system's authorities.

        Raises runtime.sockets.tls.TlsFilesError.
        """
        files = None
        if self.ca is not None and self.cert is not None and self.key is not None:
            files = TlsFiles(Path(self.cert), Path(self.key), Path(self.ca))
        if self.ca is not None:
            context = client_context(Path(self.ca), files)
        else:
            context = ssl.create_default_context()
            context.minimum_version = ssl.TLSVersion.TLSv1_3
        if self.token is not None:
            ControllerProof(self.cluster_id).demand(context)
        return context

    def authorization(self, url: str, *, named: bool) -> dict[str, str]:
        """Return the header that shows the token to `url`. Raises AccessError.

        `named`: the caller named this server, no other server did.
        """
        if self.token is None:
            return {}
        if url.startswith(PLAIN) and not (self.token_in_clear and named):
            raise AccessError(
                f"the token is not sent to {url}: over plain HTTP others can read it, and the "
                f"server can't prove its identity; use https://, or allow it with {IN_CLEAR}"
            )
        return {"authorization": f"Bearer {self.token}"}


def read_token(path: Path) -> str:
    """Read a token's file. Raises AccessError when it isn't there, or holds no token."""
    try:
        token = path.read_text().strip()
    except OSError as error:
        raise AccessError(
            f"the token file {path} can't be read ({error.strerror}); name another with "
            "--token-file (LOGBERG_TOKEN_FILE)"
        ) from None
    except UnicodeDecodeError:
        token = ""
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise AccessError(
            f"the token file {path} holds no token; it must be one line of printable ASCII"
        )
    return token
