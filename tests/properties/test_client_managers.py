"""Drawn requests about clients, over HTTP: answers and log are what the reference says.

`tests.reference.clients` has the rules once more, written from the spec. Here are credentials,
producer ids and tokens; `test_access_and_quotas` has the rest.
"""

import base64
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from metadata.image import image_to_records
from metadata.records import (
    DelegationTokenRecord,
    ProducerIdsRecord,
    UserScramCredentialRecord,
)
from metadata.sealing import ClusterKey
from runtime.http.requests import Caller
from tests.reference.clients import BYTES, Clients
from tests.reference.replicas import Refused
from tests.unit.controller.cluster import Broker, Cluster

PERIOD_MS, LIFE_MS = 60_000, 150_000
UNCLEAR_MS = 8_000
"""So near to its expiry it depends on the sweep whether a token is there."""
MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
users = st.sampled_from(["User:al", "User:bo", "User:cy"])
credentials = st.tuples(st.sampled_from(["al", "bo"]), st.sampled_from(list(BYTES)))
puts = st.tuples(
    credentials, st.sampled_from([4095, 4096, 8192, 16384, 16385]), st.sampled_from([32, 64, 0, 0])
)


class ClientsOfACluster(RuleBasedStateMachine):
    """One controller beside the reference."""

    @initialize()
    def begin(self) -> None:
        self.cluster: Any = Cluster(
            nodes=1,
            cluster_key=ClusterKey(bytes(range(32))),
            token_period_ms=PERIOD_MS,
            token_max_lifetime_ms=LIFE_MS,
        )
        self.reference = Clients(PERIOD_MS, LIFE_MS)
        self.broker = Broker(self.cluster, 1).register()
        self.secrets: dict[str, str] = {}

    @property
    def now_ms(self) -> int:
        clock = self.cluster.processes[self.cluster.shared.leader].clock
        return int(clock.wall_ms())

    def _ask(self, path: str, body: Any, by: str = "User:al", method: str = "POST") -> Any:
        caller = Caller(by, "token", "10.0.0.7")
        return self.cluster.ask(method, path, body, caller=caller)

    @rule(deleted=st.lists(credentials, max_size=2), put=st.lists(puts, max_size=2))
    def scram(self, deleted: Any, put: Any) -> None:
        if not deleted and not put:
            return
        rows = [(*key, iterations, size or BYTES[key[1]]) for key, iterations, size in put]
        body = {
            "deletions": [{"name": n, "mechanism": m} for n, m in deleted],
            "upsertions": [
                {
                    "name": name,
                    "mechanism": mechanism,
                    "iterations": iterations,
                    "salt": base64.b64encode(b"s" * 16).decode(),
                    "saltedPassword": base64.b64encode(b"p" * size).decode(),
                }
                for name, mechanism, iterations, size in rows
            ],
        }
        status, reply = self._ask("/v1/users/scram", body)
        assert status == 200, reply
        said = {user["name"]: code_of(user["error"]) for user in reply["users"]}
        expected = self.reference.alter_credentials(deleted, rows)
        assert said == expected, (said, expected)

    @rule(right_epoch=st.sampled_from([True, True, False]))
    def producer_ids(self, right_epoch: bool) -> None:
        epoch = self.broker.epoch + (not right_epoch)
        body = {"brokerId": 1, "brokerEpoch": epoch}
        status, reply = self._ask("/v1/producer-ids", body, "Broker:1")
        start = self._same(
            lambda: self.reference.producer_block(right_epoch=right_epoch), status, reply
        )
        if start is not None:
            assert (reply["producerIdStart"], reply["producerIdLen"]) == (start, 1000)

    @rule(
        by=users,
        renewers=st.lists(users | st.just("Group:g"), max_size=2, unique=True),
        life=st.sampled_from([-1, 30_000, 999_999_999]),
    )
    def create_token(self, by: str, renewers: Any, life: int) -> None:
        status, reply = self._ask("/v1/tokens", {"renewers": renewers, "maxLifetimeMs": life}, by)
        issued = reply["token"]["issueTimestampMs"] if status == 200 else 0
        made = self._same(
            lambda: self.reference.create_token(by, tuple(renewers), life, issued), status, reply
        )
        if made is not None:
            token_id = reply["token"]["tokenId"]
            self.reference.tokens[token_id] = made
            self.secrets[token_id] = reply["hmac"]

    @rule(number=st.integers(0, 5), by=users, knows=st.sampled_from([True, True, False]))
    def renew_token(self, number: int, by: str, knows: bool) -> None:
        token_id, hmac = self._token(number, knows)
        status, reply = self._ask(f"/v1/tokens/{token_id}/renew", {"hmac": hmac}, by)
        # A renewal counts from the controller's clock, which stands still here but for the commit.
        self._same(
            lambda: self.reference.renew_token(token_id, by, self._asked_at(reply), knows=knows),
            status,
            reply,
        )

    @rule(
        number=st.integers(0, 5),
        by=users,
        knows=st.sampled_from([True, True, False]),
        later=st.sampled_from([-1, 20_000, 999_999]),
    )
    def expire_token(self, number: int, by: str, knows: bool, later: int) -> None:
        token_id, hmac = self._token(number, knows)
        body = {"hmac": hmac, "expiryTimePeriodMs": later}
        status, reply = self._ask(f"/v1/tokens/{token_id}/expire", body, by)
        at = self._asked_at(reply, later) if later >= 0 else 0
        self._same(
            lambda: self.reference.expire_token(token_id, by, at, later, knows=knows),
            status,
            reply,
        )

    def _token(self, number: int, knows: bool) -> tuple[str, str]:
        known = sorted(self.secrets)
        token_id = known[number % len(known)] if known else "none"
        right = self.secrets.get(token_id, "")
        return token_id, right if knows and right else base64.b64encode(b"x" * 64).decode()

    def _asked_at(self, reply: Any, period_ms: int = PERIOD_MS) -> int:
        """Return when the controller decided: within the last 100 ms, as the answer says."""
        said = int(reply.get("expiryTimestampMs", 0)) - period_ms
        return said if self.now_ms - 100 <= said <= self.now_ms else self.now_ms

    @rule(seconds=st.sampled_from([5, 20, 50]))
    def wait(self, seconds: int) -> None:
        self.cluster.run(seconds)

    def _same(self, expected: Any, status: int, reply: Any) -> Any:
        try:
            result, code = expected(), None
        except Refused as refused:
            result, code = None, str(refused)
        assert (None if status == 200 else reply["code"]) == code, reply
        return result

    @invariant()
    def the_log_says_what_the_reference_says(self) -> None:
        if not hasattr(self, "reference"):
            return
        while any(
            abs(token.expiry - self.now_ms) < UNCLEAR_MS for token in self.reference.tokens.values()
        ):
            self.cluster.run(2.0)
        self.reference.sweep(self.now_ms)
        self.cluster.run(0.05)
        found: dict[type, list[Any]] = {}
        for record in image_to_records(self.cluster.image):
            found.setdefault(type(record), []).append(record)
        assert {
            (each.name, MECHANISMS[each.mechanism]): each.iterations
            for each in found.get(UserScramCredentialRecord, ())
        } == self.reference.credentials
        last = [each.next_producer_id for each in found.get(ProducerIdsRecord, ())]
        assert sum(last) == self.reference.next_producer_id
        assert {
            each.token_id: (
                each.owner,
                set(each.renewers),
                each.max_timestamp,
                each.expiration_timestamp,
            )
            for each in found.get(DelegationTokenRecord, ())
        } == {
            token_id: (token.owner, set(token.renewers), token.most, token.expiry)
            for token_id, token in self.reference.tokens.items()
        }

    def teardown(self) -> None:
        if hasattr(self, "reference"):
            self.cluster.assert_equal()


def code_of(error: Any) -> str | None:
    return None if error is None else str(error["code"])


ClientsOfACluster.TestCase.settings = settings(
    max_examples=40,
    stateful_step_count=25,
)
TestClientsOfACluster = ClientsOfACluster.TestCase
