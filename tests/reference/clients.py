"""A second set of rules for clients: quotas, SCRAM credentials, ACLs, producer ids and tokens.

Written from the list of features (C: managers of quotas, credentials, entries, tokens and producer
ids), KIP-48, 546, 554, 730 and 801, and the sentences of the case tables. Plain dicts.

Rule: this module knows nothing of the product. A request that is refused raises `Refused`, an
entry that is refused has its code as its answer; None: it was accepted.
"""

from dataclasses import dataclass
from ipaddress import ip_network

from tests.reference.access import Entry
from tests.reference.applied_quotas import Entity
from tests.reference.replicas import Refused

BLOCK = 1000
LEAST_ITERATIONS, MOST_ITERATIONS = 4096, 16384
BYTES = {"SCRAM-SHA-256": 32, "SCRAM-SHA-512": 64}
OF_USERS = {
    *("producer_byte_rate", "consumer_byte_rate", "request_percentage"),
    "controller_mutation_rate",
}
WHOLE = {"producer_byte_rate", "consumer_byte_rate", "connection_creation_rate"}
OF_ADDRESSES = {"connection_creation_rate"}
MOST_CONNECTIONS = 2**31 - 1

RANGES_FROM = 32
"""The metadata.version from which on an entry's host may be a range of addresses."""

Parts = tuple[tuple[str, str | None], ...]
"""An entity as a request has it: perhaps with a part twice."""
Code = str | None


@dataclass
class Token:
    """A delegation token; times in ms."""

    owner: str
    renewers: tuple[str, ...]
    most: int
    expiry: int


class Clients:
    """Everything about clients that the log holds."""

    def __init__(self, token_period_ms: int, token_life_ms: int) -> None:
        self.level = 0
        """The metadata.version."""
        self.quotas: dict[Entity, dict[str, float]] = {}
        self.credentials: dict[tuple[str, str], int] = {}
        self.entries: set[Entry] = set()
        self.next_producer_id = 0
        self.tokens: dict[str, Token] = {}
        self._period_ms, self._life_ms = token_period_ms, token_life_ms

    # -- quotas ------------------------------------------------------------------------------

    def alter_quotas(self, asked: list[tuple[Parts, list[tuple[str, float | None]]]]) -> list[Code]:
        """Each entity is judged by itself, and changes as a whole; None as a value removes."""
        seen: set[Entity] = set()
        codes: list[Code] = []
        for entity, operations in asked:
            wrong = not _is_entity(entity) or frozenset(entity) in seen
            if not wrong:
                seen.add(frozenset(entity))
                wrong = len({key for key, _ in operations}) < len(operations) or not all(
                    _is_quota(entity, *operation) for operation in operations
                )
            codes.append("INVALID_REQUEST" if wrong else None)
            if wrong:
                continue
            values = self.quotas.setdefault(frozenset(entity), {})
            for key, value in operations:
                if value is None:
                    values.pop(key, None)
                else:
                    values[key] = value
            if not values:
                del self.quotas[frozenset(entity)]
        return codes

    # -- SCRAM credentials -------------------------------------------------------------------

    def alter_credentials(
        self, deleted: list[tuple[str, str]], put: list[tuple[str, str, int, int]]
    ) -> dict[str, Code]:
        """Each user has the code of its first wrong change, and changes as a whole.

        `put`: name, mechanism, iterations, bytes of the password.
        """
        codes: dict[str, Code] = {}
        seen: set[tuple[str, str]] = set()
        changes: list[tuple[str, str, int, int]] = [(*key, 0, 0) for key in deleted]
        for name, mechanism, iterations, size in changes + put:
            code = None
            if (name, mechanism) in seen:
                code = "DUPLICATE_RESOURCE"
            elif not iterations:
                code = None if (name, mechanism) in self.credentials else "RESOURCE_NOT_FOUND"
            elif not LEAST_ITERATIONS <= iterations <= MOST_ITERATIONS or size != BYTES[mechanism]:
                code = "UNACCEPTABLE_CREDENTIAL"
            seen.add((name, mechanism))
            codes[name] = codes.get(name) or code
        for name, mechanism in deleted:
            if codes[name] is None:
                del self.credentials[name, mechanism]
        for name, mechanism, iterations, _ in put:
            if codes[name] is None:
                self.credentials[name, mechanism] = iterations
        return codes

    # -- access control entries --------------------------------------------------------------

    def create_entries(self, wanted: list[Entry]) -> list[str]:
        """Return for each: added, existed, or the code of its error."""
        answers = []
        for entry in wanted:
            code = self._why_no_host(entry.host)
            answers.append(code or ("existed" if entry in self.entries else "added"))
            if code is None:
                self.entries.add(entry)
        return answers

    def _why_no_host(self, host: str) -> Code:
        if "/" not in host:
            return None
        try:
            ip_network(host, strict=False)
        except ValueError:
            return "INVALID_REQUEST"
        return None if self.level >= RANGES_FROM else "UNSUPPORTED_VERSION"

    def delete_entries(self, kind: str | None, name: str | None, principal: str | None) -> int:
        """Return how many entries a filter removed; None matches everything."""
        gone = {
            entry
            for entry in self.entries
            if kind in (None, entry.kind)
            and (name is None or (entry.name == name and entry.pattern == "LITERAL"))
            and principal in (None, entry.principal)
        }
        self.entries -= gone
        return len(gone)

    # -- producer ids ------------------------------------------------------------------------

    def producer_block(self, *, right_epoch: bool) -> int:
        """Return where the next block begins."""
        if not right_epoch:
            raise Refused("STALE_BROKER_EPOCH")
        self.next_producer_id += BLOCK
        return self.next_producer_id - BLOCK

    # -- tokens ------------------------------------------------------------------------------

    def create_token(self, owner: str, renewers: tuple[str, ...], life_ms: int, now: int) -> Token:
        """`life_ms` -1: as long as possible."""
        if any(not renewer.startswith("User:") for renewer in renewers):
            raise Refused("INVALID_PRINCIPAL_TYPE")
        life = self._life_ms if life_ms < 0 else min(life_ms, self._life_ms)
        return Token(owner, renewers, now + life, min(now + life, now + self._period_ms))

    def renew_token(self, token_id: str, caller: str, now: int, *, knows: bool) -> None:
        token = self._held(token_id, caller, knows=knows)
        token.expiry = min(token.most, now + self._period_ms)

    def expire_token(
        self, token_id: str, caller: str, now: int, later_ms: int, *, knows: bool
    ) -> None:
        """`later_ms` -1: at once."""
        token = self._held(token_id, caller, knows=knows)
        if later_ms < 0:
            del self.tokens[token_id]
        else:
            token.expiry = min(token.most, now + later_ms)

    def sweep(self, now: int) -> None:
        """Forget what has expired."""
        for token_id, token in list(self.tokens.items()):
            if token.expiry <= now:
                del self.tokens[token_id]

    def _held(self, token_id: str, caller: str, *, knows: bool) -> Token:
        """Return the token of a caller who shows its HMAC, and may renew it."""
        if token_id not in self.tokens or not knows:
            raise Refused("DELEGATION_TOKEN_NOT_FOUND")
        token = self.tokens[token_id]
        if caller not in (token.owner, *token.renewers):
            raise Refused("DELEGATION_TOKEN_OWNER_MISMATCH")
        return token


def _is_entity(entity: Parts) -> bool:
    kinds = [kind for kind, _ in entity]
    if not kinds or len(set(kinds)) < len(kinds):
        return False
    return not set(kinds) - {"user", "client-id", "ip"} and ("ip" not in kinds or len(kinds) == 1)


def _is_quota(entity: Parts, key: str, value: float | None) -> bool:
    if value is None:
        # What is not there may be removed, whatever its key is.
        return True
    of_address = entity[0][0] == "ip"
    if key not in (OF_ADDRESSES if of_address else OF_USERS):
        return False
    if value <= 0 or (key in WHOLE and value != int(value)):
        return False
    return not of_address or value <= MOST_CONNECTIONS
