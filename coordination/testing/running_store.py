"""A store that somebody else runs, reached by its URL: what a third party tests its backend with.

Rule: the suite never stops, expires or compacts what it didn't start. So only the abilities that a
proxy gives are there, and the matrix shows which cases that leaves out.
"""

from collections.abc import Sequence
from urllib.parse import urlsplit, urlunsplit

from coordination.testing.proxy import Address
from coordination.testing.store import Ability, TcpStore


class RunningStore(TcpStore):
    """The store at a URL of `connect`."""

    def __init__(self, url: str, ttl: float, request_timeout: float = 3.0) -> None:
        """`ttl`: of the cases, in seconds, at least the backend's smallest one."""
        super().__init__()
        self._parts = urlsplit(url)
        self._user, at, hosts = self._parts.netloc.rpartition("@")
        self._user += at
        self.name = self._parts.scheme
        self.ttl = ttl
        self.request_timeout = request_timeout
        self.addresses = [_address(host) for host in hosts.split(",")]
        self.abilities = frozenset({Ability.CUT, Ability.OTHER_PROCESS, Ability.SEVERAL_ENDPOINTS})

    def url(self, addresses: Sequence[Address]) -> str:
        hosts = ",".join(str(address) for address in addresses)
        return urlunsplit(self._parts._replace(netloc=self._user + hosts))


def _address(text: str) -> Address:
    """Return the address that `host:port` names. Raises ValueError without a port."""
    host, _, port = text.rpartition(":")
    if not host:
        raise ValueError(f"write the port of {text!r} into the URL, as host:port")
    return Address(host.strip("[]"), int(port))
