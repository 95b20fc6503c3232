"""A Kafka listener's handlers before real controllers, and Kafka brokers that ask them in bytes."""

from functools import partial

import structlog

from kafka_listener.asking.asking import Asking
from kafka_listener.asking.failures import failure
from kafka_listener.asking.refused_brokers import RefusedBrokers
from kafka_listener.asking.request import KafkaFailure, KafkaRequest
from kafka_listener.brokers.handlers import broker_handlers
from kafka_listener.wire.messages import (
    RequestHeader,
    decode_request,
    decode_response,
    decode_response_header,
    encode_message,
    encode_request,
    encode_request_header,
    encode_response,
)
from runtime.http.requests import ANONYMOUS
from tests.unit.controller.cluster import CLUSTER_ID, Cluster

FEATURES = [
    {"Name": "metadata.version", "MinSupportedVersion": 7, "MaxSupportedVersion": 30},
    {
        "Name": "eligible.leader.replicas.version",
        "MinSupportedVersion": 0,
        "MaxSupportedVersion": 1,
    },
    {"Name": "group.version", "MinSupportedVersion": 0, "MaxSupportedVersion": 1},
]
"""What a 4.3.1 broker declares, in part."""
LEVELS = {"metadata.version": 30, "logberg.version": 4}


class ListeningCluster(Cluster):
    """Controllers with the handlers of brokers; `more` adds handlers by api key."""

    def __init__(self, more=None, levels=LEVELS, **options):
        self.listeners = {}
        self.more = more or (lambda _asking: {})
        super().__init__(initial_features=levels, **options)

    def handlers_of(self, node):
        """Return the handlers of a controller's process. They live as long as it does."""
        controller = self.controllers[node]
        if controller in self.listeners:
            return self.listeners[controller]
        asking = Asking(controller.handle, self.processes[node].clock)
        found = self.listeners[controller] = {}
        found.update(
            broker_handlers(
                controller,
                controller.handle,
                asking,
                found.get,
                RefusedBrokers(structlog.wrap_logger(None, processors=[self.logs])),
                cluster_id=CLUSTER_ID,
                require_authentication=self.config.get("require_authentication", False),
            )
        )
        found.update(self.more(asking))
        return found

    def send_kafka(self, api_key, version, fields, *, node=None, caller=ANONYMOUS, client_id="1"):
        """Ask in bytes; returns the list in which the decoded answer will be."""
        node, answers = node or self.shared.leader, []
        sent = decode_request(api_key, version, encode_request(api_key, version, fields))
        request = KafkaRequest(api_key, version, client_id, sent, caller)

        def take(answer):
            assert not answers, "a request was answered twice"
            encoded = encode_response(api_key, version, answer)
            answers.append(decode_response(api_key, version, encoded))

        def ask():
            try:
                self.handlers_of(node)[api_key](request, take)
            except KafkaFailure as error:
                take(failure(api_key, version, sent, error.code, error.message))

        self.processes[node].run(ask)
        return answers

    def kafka(self, api_key, version, fields, **options):
        """Ask and wait for the answer."""
        answers = self.send_kafka(api_key, version, fields, **options)
        self.run_until(lambda: bool(answers))
        return answers[0]

    def forward(self, api_key, version, fields, *, user="alice", address="10.1.2.3", **options):
        """Send a client's request in an envelope; returns the envelope's error and the answer."""
        head = encode_request_header(RequestHeader(api_key, version, 7, "a-client"))
        name = {"Type": "User", "Name": user, "TokenAuthenticated": False}
        envelope = {
            "RequestData": head + encode_request(api_key, version, fields),
            "RequestPrincipal": b"\0\0" + encode_message("DefaultPrincipalData", 0, name),
            "ClientHostAddress": bytes(map(int, address.split("."))),
        }
        answer = self.kafka(58, 0, envelope, **options)
        if answer["ResponseData"] is None:
            return answer["ErrorCode"], None
        data = bytes(answer["ResponseData"])
        correlation_id, body_at = decode_response_header(api_key, version, data)
        assert correlation_id == 7
        return answer["ErrorCode"], decode_response(api_key, version, data, body_at)


class KafkaBroker:
    """A Kafka broker's process as its controller sees it."""

    def __init__(self, cluster, broker_id, caller=ANONYMOUS, **registration):
        self.cluster = cluster
        self.broker_id = broker_id
        self.ask = partial(cluster.kafka, caller=caller, client_id=str(broker_id))
        self.incarnation = cluster.world.random("incarnations").randbytes(16)
        self.registration = {
            "BrokerId": broker_id,
            "ClusterId": CLUSTER_ID,
            "IncarnationId": self.incarnation,
            "Listeners": [
                {"Name": "PLAINTEXT", "Host": "localhost", "Port": 9092, "SecurityProtocol": 0}
            ],
            "Features": FEATURES,
            "Rack": None,
            "LogDirs": [cluster.world.random("directories").randbytes(16)],
            "PreviousBrokerEpoch": -1,
            **registration,
        }
        self.epoch = -1

    def register(self, **changes):
        answer = self.ask(62, 4, {**self.registration, **changes})
        if answer["ErrorCode"] == 0:
            self.epoch = answer["BrokerEpoch"]
        return answer

    def beat(self, offset=None, *, fence=False, stop=False, **more):
        """Send a heartbeat that has applied `offset`, the whole log if none."""
        fields = {
            "BrokerId": self.broker_id,
            "BrokerEpoch": self.epoch,
            "CurrentMetadataOffset": self.cluster.image.offset - 1 if offset is None else offset,
            "WantFence": fence,
            "WantShutDown": stop,
            **more,
        }
        return self.ask(63, 2, fields)

    def bring_online(self):
        assert self.register()["ErrorCode"] == 0
        assert not self.beat()["IsFenced"]
        return self
