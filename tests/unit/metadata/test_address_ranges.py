"""Ranges of addresses against Python's own answer, and texts that say none."""

from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metadata.address_ranges import range_of, ranges_around

addresses = st.ip_addresses()


@given(addresses, addresses, st.integers(0, 128))
def test_an_address_is_in_a_range_as_python_says(address, other, length):
    length = min(length, other.max_prefixlen)
    network = ip_network(f"{other}/{length}", strict=False)
    held = range_of(f"{other}/{length}") in set(ranges_around(str(address)))
    assert held == (address in network)


@given(addresses)
def test_the_ranges_around_an_address_are_one_of_each_length(address):
    lengths = [length for length, _ in ranges_around(str(address))]
    assert lengths == list(range(address.max_prefixlen, -1, -1))
    assert all(ip_address(first) is not None for _, first in ranges_around(str(address)))


@pytest.mark.parametrize(
    "text",
    [
        *("", "/", "10.0.0.1", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/255.0.0.0"),
        *("here/8", "10.0.0/8", "10.0.0.0/8/8", "::1/129", "fe80::1%eth0/64", "10.0.0.0/ 8"),
        *("010.0.0.0/8", "10.0.0.0/\u0668"),
    ],
)
def test_what_says_no_range(text):
    assert range_of(text) is None


def test_what_is_no_address_is_in_no_range():
    assert list(ranges_around("local")) == []
    assert list(ranges_around("")) == []
