"""Answers what brokers and their agents ask: fetches, ISRs, directories, keys of subjects."""

from controller.http.broker_requests import BrokerRequests, claim_of
from controller.http.call import Answers, Call
from controller.http.clients.erasures import keys_for_broker
from controller.http.fetch_asker import FetchAsker
from controller.http.metadata_fetch import MetadataFetch
from controller.http.node_view import NodeView
from controller.http.queries import broker_id_of
from controller.http.shared_replies import FetchAnswer
from controller.leader.requested_change import if_allowed
from metadata.messages import AlterPartitionRequest, AssignReplicasRequest, MetadataFetchRequest


def broker_answers(
    node: NodeView, fetch: MetadataFetch, altering: BrokerRequests, assigning: BrokerRequests
) -> Answers:
    """Return the table. `altering` and `assigning` submit changes of ISRs and of directories."""
    leader = node.leader

    def metadata_fetch(call: Call) -> None:
        message: MetadataFetchRequest = call.message

        def done(answer: FetchAnswer) -> None:
            code = answer.error
            status = 200 if code is None else code.status
            body = answer.encoded(call.format)
            call.reply_encoded(status, body, code=code, retry_after_ms=answer.retry_after_ms)

        fetch.handle(message, FetchAsker(call.request.caller, call.access), done)

    def alter_partition(call: Call) -> None:
        message: AlterPartitionRequest = call.message
        claim = claim_of(message.broker_id, message)
        isrs = leader.isrs
        decide = if_allowed(lambda image: isrs.alter(image, message), call.access)
        altering.handle(claim, call.request.caller, decide, call.answer)

    def assign_replicas(call: Call) -> None:
        broker_id = broker_id_of(call.arguments["id"])
        message: AssignReplicasRequest = call.message
        claim = claim_of(broker_id, message)
        decide = if_allowed(leader.directories.assign(broker_id, message), call.access)
        assigning.handle(claim, call.request.caller, decide, call.answer, in_rounds=True)

    def read_subject_keys(call: Call) -> None:
        call.answer(keys_for_broker(node.replica.image, node.subject_keys))

    return {
        "metadata_fetch": metadata_fetch,
        "alter_partition": alter_partition,
        "assign_replicas": assign_replicas,
        "read_subject_keys": read_subject_keys,
    }
