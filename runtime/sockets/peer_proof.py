"""Allows TLS connections only to controllers of the expected cluster.

Rule: the TLS handshake fails unless the verified certificate of the other side names a controller,
`quorum://<cluster id>/<node id>`. So a client sends no request, and no token in it, before the
other side has proved that it is a controller of the cluster. If the client knows no cluster id, it
takes that of the first accepted certificate and expects it from then on.
"""

import ssl
from typing import Any
from urllib.parse import urlsplit

_CONTROLLER = "quorum"


class ControllerProof:
    """Checks the certificates of the other sides."""

    def __init__(self, cluster_id: str | None = None) -> None:
        """`cluster_id`: the expected one; None: that of the first accepted certificate."""
        self.cluster_id = cluster_id

    def demand(self, context: ssl.SSLContext) -> None:
        """Check the certificate in every handshake that asyncio makes with `context`."""
        proof = self

        class Proven(ssl.SSLObject):
            def do_handshake(self) -> None:
                super().do_handshake()
                if why := proof.objection(self.getpeercert()):
                    raise ssl.SSLCertVerificationError(1, why)

        context.sslobject_class = Proven

    def objection(self, certificate: Any) -> str | None:
        """Return why a verified certificate (of `getpeercert`) is refused; None: it is accepted."""
        names = (certificate or {}).get("subjectAltName", ())
        uris = [str(value) for kind, value in names if kind == "URI"]
        wanted = "a controller" + (f" of cluster {self.cluster_id}" if self.cluster_id else "")
        if len(uris) != 1:
            found = f"{len(uris)} URIs" if uris else "no URI"
            return f"its certificate has {found}, and {wanted} has one"
        parts = urlsplit(uris[0])
        if parts.scheme != _CONTROLLER or not parts.netloc:
            return f"its certificate is for {uris[0][:200]!r}, and not for {wanted}"
        if self.cluster_id is None:
            self.cluster_id = parts.netloc
        if parts.netloc != self.cluster_id:
            return f"its certificate is for {uris[0][:200]!r}, and not for {wanted}"
        return None
