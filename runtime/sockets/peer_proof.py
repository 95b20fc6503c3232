"""Allows TLS connections only to controllers of the expected cluster.

Rule: the handshake itself fails when the verified certificate of the other side does not name a
controller, `quorum://<cluster id>/<node id>`. So no byte of a request, and no token in it, leaves
before the other side has proved who it is. Where no cluster id is known, the first cluster that
proves itself is the expected one from then on.
"""

import ssl
from typing import Any
from urllib.parse import urlsplit

_CONTROLLER = "quorum"


class ControllerProof:
    """What the certificates of the other sides must say."""

    def __init__(self, cluster_id: str | None = None) -> None:
        """`cluster_id`: the expected cluster; None: that of the first certificate accepted."""
        self.cluster_id = cluster_id

    def demand(self, context: ssl.SSLContext) -> None:
        """Hold every connection that `context` opens through asyncio to this proof."""
        proof = self

        class Proven(ssl.SSLObject):
            def do_handshake(self) -> None:
                super().do_handshake()
                if why := proof.objection(self.getpeercert()):
                    raise ssl.SSLCertVerificationError(1, why)

        context.sslobject_class = Proven

    def objection(self, certificate: Any) -> str | None:
        """Say why a verified certificate (`getpeercert`'s answer) proves nothing; None: it does."""
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
