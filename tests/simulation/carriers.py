"""Checks that the log names, for each batch of a simulated cluster, the sender of its request.

Rule: the principal of a batch is the authenticated sender of the request that caused it, whatever
the body says. A batch without a request is the controller's own. The expected principals are noted
where requests arrive, so that this check does not depend on the product's own statement.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import msgspec

from ledger.batch import BatchHeader, Provenance
from metadata.messages import (
    AllocateProducerIdsRequest,
    AlterPartitionRequest,
    MetadataFetchRequest,
)
from metadata.messages.wire import decode as decode_as
from metadata.sealed_addresses import is_sealed
from metadata.sealed_texts import SEALED_TEXT
from runtime.http.requests import Caller, Reply, Request
from tests.checkers.principals import OF_CONTROLLERS, OF_OTHERS

FETCH = "/v1/metadata/fetch"
PRODUCER_IDS = "/v1/producer-ids"
OWN = OF_CONTROLLERS | {"BalanceLeaders", "SetVoters"}
"""What a controller decides without a request. It waits for a stopping broker: what that broker
asked for and was refused (a full disk) may be decided when it no longer asks."""
_DECODE: dict[str, Callable[[bytes], Any]] = {
    FETCH: msgspec.msgpack.Decoder(MetadataFetchRequest).decode,
    "/v1/partitions/alter": msgspec.msgpack.Decoder(AlterPartitionRequest).decode,
}
"""By path: how to read requests of brokers."""


def credential_of(broker_id: int, *, always: bool = False) -> Caller:
    """Of two brokers one has a certificate; the other shows nothing, where that is allowed.

    `always`: every broker has one.
    """
    address = f"10.0.1.{broker_id}"
    if broker_id % 2 or always:
        return Caller(f"Broker:{broker_id}", "certificate", address)
    return Caller(address=address)


class Carriers:
    """Watches all controllers of a cluster."""

    def __init__(self, world: Any) -> None:
        self._world = world
        self._submitted: set[tuple[object, ...]] = set()

    def watch(self, node_id: int, controller: Any) -> Callable[[Request, Any], None]:
        """Return the handler of a controller's life, which knows the request under way."""
        now: list[Request | None] = [None]
        leader = controller._leader
        seals = leader.address_sealer is not None
        proposer, leadership_check = leader.proposer, leader.leadership_check

        def during(request: Request | None, act: Callable[[], None]) -> None:
            before, now[0] = now[0], request
            try:
                act()
            finally:
                now[0] = before

        def submit(decision: Any, submit: Callable[[Any], None] = proposer.submit) -> None:
            self._judge(node_id, decision, now[0])
            said = decision.provenance
            for address in (said.client_address, SEALED_TEXT)[: 1 + seals]:
                self._submitted.add((proposer.epoch, decision.acted_as, *_who(said, address)))
            submit(decision)

        def holds(go_on: Callable[[], None], holds: Any = leadership_check.holds) -> bool:
            held: bool = holds(partial(during, now[0], go_on))
            return held

        proposer.submit, leadership_check.holds = submit, holds
        changes = leader.changes
        carry_out = changes._submit

        def later(request: Request, *rest: Any) -> None:
            # A large body is carried out in a later pass of the loop than the one it came in.
            during(request, partial(carry_out, request, *rest))

        changes._submit = later

        def handle(request: Request, reply: Callable[[Reply], None]) -> None:
            during(request, lambda: controller.handle(request, reply))

        return handle

    def check_log(self, node_id: int, headers: Iterable[BatchHeader]) -> None:
        """Every batch says of its origin what its decision said when it was handed in."""
        for header in headers:
            address = header.provenance.client_address
            if is_sealed(address):
                address = SEALED_TEXT
            said = (header.epoch, header.acted_as, *_who(header.provenance, address))
            if said not in self._submitted:
                self._fail(f"the batch at {header.base_offset} says {said}", node_id)

    def _judge(self, node_id: int, decision: Any, request: Request | None) -> None:
        said = decision.provenance
        if said.principal.startswith("Controller:"):
            own = said.operation in OWN and not said.request_id and not decision.acted_as
            mine = said.principal == f"Controller:{node_id}"
            if not own or not (mine or said.operation in OF_OTHERS):
                self._fail(f"no request caused {said}", node_id)
        elif request is None:
            self._fail(f"no request is under way that could cause {said}", node_id)
        elif (said.principal, said.auth_method, said.client_address) != (
            request.caller.principal,
            request.caller.method,
            request.caller.address,
        ):
            self._fail(f"{said} is not the carrier of its request, {request.caller}", node_id)
        elif decision.acted_as != _role(request):
            self._fail(f"{said} acted as {decision.acted_as!r}, not {_role(request)!r}", node_id)

    def _fail(self, what: str, node_id: int) -> None:
        self._world.fail(f"I15: {what}", node_id)


def _who(said: Provenance, address: str | None = None) -> tuple[object, ...]:
    return (
        said.principal,
        said.auth_method,
        said.on_behalf_of,
        said.client_address if address is None else address,
        said.operation,
        said.request_id,
    )


def _role(request: Request) -> str:
    """What a request acts as, beside its carrier's own name."""
    decode = _DECODE.get(request.path)
    if request.path == PRODUCER_IDS:
        asked = decode_as(AllocateProducerIdsRequest, request.body, request.headers["content-type"])
        role = f"Broker:{asked.broker_id}"
    elif decode is not None:
        role = f"Broker:{decode(request.body).broker_id}"
    elif request.path.endswith("/directories"):
        role = f"Broker:{request.path.split('/')[3]}"
    else:
        return ""
    return "" if request.caller.principal == role else role
