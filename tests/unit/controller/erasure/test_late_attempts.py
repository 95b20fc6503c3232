"""An attempt that was noted before an erasure comes to the log behind it, without its address."""

import pytest

from runtime.sockets.attempts import Attempt
from tests.unit.controller.erasure.test_addresses import ALICE, BOB, attempts, opened, root
from tests.unit.controller.erasure.test_erasure import all_destroyed, made


@pytest.mark.parametrize("node", [1, 2])
@pytest.mark.parametrize(("who", "subject"), [("User:alice", "user:alice"), ("", f"from:{ALICE}")])
def test_an_address_from_before_an_erasure_is_not_sealed_under_the_next_key(who, subject, node):
    """A report of attempts is on its way for some seconds, and comes behind the erasure."""
    cluster = made(
        seal_addresses=True, super_users=frozenset({"User:root"}), attempts_interval_s=5.0
    )

    def note(principal, address):
        attempt = Attempt(principal, "token", "create_topics", "", address, "UNAUTHENTICATED", "")
        controller = cluster.controllers[node]
        cluster.processes[node].run(lambda: controller.note_attempt(attempt))

    def addresses(principal):
        found = [each.address for each in attempts(cluster) if each.principal == principal]
        return list(zip(found, opened(cluster.keys[1], found, principal), strict=True))

    note("User:bob", BOB)
    cluster.run(2)
    note(who, ALICE)
    assert root(cluster, "POST", "/v1/erasures", {"subject": subject})[0] == 200
    note("User:bob", BOB)
    cluster.run_until(lambda: all_destroyed(cluster))
    cluster.run(12)
    assert addresses(who) == [("", "")]
    note(who, ALICE)
    cluster.run(12)
    assert [clear for _, clear in addresses(who)] == ["", ALICE]
    assert [clear for _, clear in addresses("User:bob")] == [BOB, BOB]
