"""Ranges of addresses in CIDR notation, such as `10.0.0.0/8`: which ranges hold an address.

A range is a network: the length of its prefix, and its first address in 4 or 16 bytes. So an
address is in at most 33 or 129 ranges, and a map by range finds them without a look at the others.
As in Kafka, the bits behind the prefix don't count: `10.1.2.3/8` is the range of `10.0.0.0/8`.
"""

from collections.abc import Iterator
from ipaddress import ip_address, ip_network

Range = tuple[int, bytes]
"""Length of the prefix in bits, first address."""


def is_range(host: str) -> bool:
    """Return whether a host of an entry is meant as a range. It may still be none: `range_of`."""
    return "/" in host


def range_of(host: str) -> Range | None:
    """Return the range that a text says; None: it says none."""
    address, _, length = host.partition("/")
    if not length.isascii() or not length.isdecimal() or "%" in address:
        return None
    try:
        network = ip_network(host, strict=False)
    except ValueError:
        return None
    return network.prefixlen, network.network_address.packed


def ranges_around(host: str) -> Iterator[Range]:
    """Yield each range that holds an address, the narrowest first; none for what is no address."""
    try:
        address = ip_address(host).packed
    except ValueError:
        return
    bits = 8 * len(address)
    number = int.from_bytes(address, "big")
    for length in range(bits, -1, -1):
        first = number >> (bits - length) << (bits - length)
        yield length, first.to_bytes(len(address), "big")
