"""Asks a cluster's controllers as a Kafka client does: with encoded bytes, through the codec."""

from kafka_listener.admin.handlers import admin_handlers
from kafka_listener.asking.asking import Asking
from kafka_listener.asking.failures import failure
from kafka_listener.asking.request import KafkaFailure, KafkaRequest
from kafka_listener.wire.messages import (
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from runtime.http.requests import Caller
from tests.unit.controller.cluster import Cluster

ALICE = Caller("User:alice", "token", "10.0.0.7")


class KafkaClient:
    """Sends requests to one controller and reads the answers."""

    def __init__(self, cluster: Cluster, caller=ALICE, node=None):
        self.cluster = cluster
        self.caller = caller
        self.node = node
        self.defects = []
        self.asked = []
        self.clock = next(iter(cluster.processes.values())).clock
        self.handlers = self.handlers_of(self._handle)

    def handlers_of(self, ask):
        """The handlers, with a way to the routes of the test's own."""
        asking = Asking(ask, self.clock, lambda _request, error: self.defects.append(error))
        return admin_handlers(asking)

    def _handle(self, request, on_reply):
        self.asked.append(request)
        self.cluster.controllers[self._node].handle(request, on_reply)

    @property
    def _node(self):
        return self.node or self.cluster.shared.leader

    def ask(self, api_key, version, **fields):
        """Send a request and wait for its one response."""
        decoded = decode_request(api_key, version, encode_request(api_key, version, fields))
        request = KafkaRequest(api_key, version, "a-client", decoded, self.caller)
        answers = []
        self.cluster.processes[self._node].run(lambda: self._dispatch(request, answers.append))
        self.cluster.run_until(lambda: bool(answers))
        self.cluster.run(0.1)
        assert len(answers) == 1, "a request has one answer"
        assert not self.defects, self.defects
        body = encode_response(api_key, version, answers[0])
        return decode_response(api_key, version, body)

    def _dispatch(self, request, answer):
        """What the connection's dispatcher does with a handler."""
        try:
            self.handlers[request.api_key](request, answer)
        except KafkaFailure as refused:
            key, version, fields = request.api_key, request.version, request.fields
            answer(failure(key, version, fields, refused.code, refused.message))


def codes(entries):
    """The error codes of a response's entries, in order."""
    return [entry["ErrorCode"] for entry in entries]
