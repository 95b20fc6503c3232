"""Who was seen before, from where, and who holds rights: the traits that need a memory.

Rule: a trait `new_…` is set only when the log is older than a day, so that a new cluster is not one
great finding, and for a day after the first time, so that what follows a first time is found too.
An address is known by its network: /24, or /64 of IPv6. A principal of more than eight networks
roams; nothing is new for it. A sealed address has no network and is not judged.
"""

from collections.abc import Iterable
from ipaddress import IPv4Address, ip_address
from typing import Final

import msgspec

from audit.findings.events import AuditEvent
from metadata.sealed_addresses import is_sealed

DAY_MS: Final = 86_400_000
ROAMING: Final = 8
"""From more networks than these nobody is judged by the address."""
_GIVES: Final = frozenset({"acl_added", "user_set", "token_set"})


class Acquaintance(msgspec.Struct, array_like=True):
    """A principal."""

    first_ms: int
    networks: dict[str, int]
    """When each was first seen."""
    ways: list[str]
    """Method and network, as one text; none is added for one that roams."""


FIRST: Final = "first"
"""A trait that rules don't see: the principal was never seen from this network, this way."""


class SeenBefore(msgspec.Struct):
    """What is remembered. Its fields are its state; keys are text."""

    first_ms: int | None = None
    """The first event's time."""
    principals: dict[str, Acquaintance] = {}
    grantees: dict[str, int] = {}
    """When each first got a right or a credential."""

    def begin(self, facts: Iterable[AuditEvent]) -> None:
        """Learn who holds rights where a cut log begins; there, nothing is new."""
        for fact in facts:
            if self.first_ms is None:
                self.first_ms = fact.time_ms
            if fact.grantee and fact.kind in _GIVES and "deny" not in fact.traits:
                self.grantees.setdefault(fact.grantee, fact.time_ms)

    def meet(self, event: AuditEvent) -> frozenset[str]:
        """Learn from an event; return all its traits."""
        if self.first_ms is None:
            self.first_ms = event.time_ms
        traits = set(event.traits)
        principal = event.caller.principal
        if principal:
            self._meet_caller(event, principal, traits)
        if event.grantee and event.kind in _GIVES and "deny" not in traits:
            first_ms = self.grantees.setdefault(event.grantee, event.time_ms)
            if self._is_new(first_ms, event.time_ms):
                traits.add("new_grantee")
        return frozenset(traits)

    def _meet_caller(self, event: AuditEvent, principal: str, traits: set[str]) -> None:
        caller, now_ms = event.caller, event.time_ms
        known = self.principals.get(principal)
        if known is None:
            known = self.principals[principal] = Acquaintance(now_ms, {}, [])
        if self._is_new(known.first_ms, now_ms):
            traits.add("new_caller")
        if is_sealed(caller.address):
            # Nobody here knows from which network it came.
            return
        roams = len(known.networks) > ROAMING
        network = network_of(caller.address)
        way = f"{caller.auth_method} {network}"
        if not roams and way not in known.ways:
            known.ways.append(way)
            traits.add(FIRST)
        if not network:
            return
        if network not in known.networks:
            if roams:
                return
            known.networks[network] = now_ms
        since_ms = known.networks[network]
        if since_ms - known.first_ms >= DAY_MS and now_ms - since_ms < DAY_MS and not roams:
            traits.add("new_address")

    def _is_new(self, first_ms: int, now_ms: int) -> bool:
        assert self.first_ms is not None
        return first_ms - self.first_ms >= DAY_MS and now_ms - first_ms < DAY_MS


def network_of(address: str) -> str:
    """Return the network by which an address is known; an address that isn't one is itself."""
    try:
        found = ip_address(address)
    except ValueError:
        return address
    keep = 24 if isinstance(found, IPv4Address) else 64
    bits = found.max_prefixlen - keep
    first = type(found)(int(found) >> bits << bits)
    return f"{first}/{keep}"
