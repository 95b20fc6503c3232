"""Which of Kafka's test classes run, which can't, and which failures are meant.

Rule: a failure that KRaft doesn't have is a defect of ours, unless a row of DIFFERENT says why it
is not. A class of NOT_STARTED is one of which no test could run.
"""

from typing import Final, NamedTuple

from logberg.kafka.jars import kafka_jars
from tests.kafka.kafkas_tests.jar_sets import TESTS, VERSION, classes_of_clients

_TOOLS: Final = "org.apache.kafka.tools"
OF_TOOLS: Final = (
    f"{_TOOLS}.AclCommandTest",
    f"{_TOOLS}.ClientMetricsCommandTest",
    f"{_TOOLS}.ClusterToolTest",
    f"{_TOOLS}.ConfigCommandIntegrationTest",
    f"{_TOOLS}.DelegationTokenCommandTest",
    f"{_TOOLS}.DeleteRecordsCommandTest",
    f"{_TOOLS}.FeatureCommandTest",
    f"{_TOOLS}.GetOffsetShellTest",
    f"{_TOOLS}.LeaderElectionCommandTest",
    f"{_TOOLS}.MetadataQuorumCommandTest",
    f"{_TOOLS}.TopicCommandTest",
    f"{_TOOLS}.UserScramCredentialsCommandTest",
    f"{_TOOLS}.reassign.ReassignPartitionsCommandTest",
)
"""Those of kafka-tools that talk to a cluster's controllers through a broker, or directly."""

OF_CORE: Final = (
    "kafka.admin.AddPartitionsTest",
    "kafka.server.AlterUserScramCredentialsRequestTest",
    "kafka.server.ControllerMutationQuotaTest",
    "kafka.server.CreateTopicsRequestTest",
    "kafka.server.DeleteTopicsRequestTest",
    "kafka.server.DeleteTopicsRequestWithDeletionDisabledTest",
    "kafka.server.DescribeUserScramCredentialsRequestTest",
)
"""Those of kafka_2.13 that send a controllers' request as bytes. Kafka's second kit runs them."""

NOT_STARTED: Final[dict[str, str]] = {
    "org.apache.kafka.server.quota.CustomQuotaCallbackTest": (
        "both tests count the calls of a Java plug-in inside the controllers "
        "(`client.quota.callback.class`)."
    ),
    "org.apache.kafka.clients.MetricsDuringTopicCreationDeletionTest": (
        "the test reads the controllers' metrics in its own JVM."
    ),
    "org.apache.kafka.clients.security.GroupAuthorizerIntegrationTest": (
        "all tests make their ACLs by calling the authorizer in a controller's memory."
    ),
}
"""By class: why none of its tests can run."""


class Different(NamedTuple):
    """Tests that fail on our controllers for a reason that is no defect."""

    test: str
    """The test's class and method, such as DeleteTopicTest.testSomething; a prefix."""
    why: str
    """A sentence."""


_WORDS: Final = "The error's code is Kafka's. The test compares its message, and ours says more."
_SALTED: Final = (
    "The test gives a salted password of 14 bytes. No client makes one: SCRAM-SHA-256 has 32 bytes "
    "and SCRAM-SHA-512 has 64. Ours refuses any other length with UNACCEPTABLE_CREDENTIAL."
)
_SCRAM: Final = "AlterUserScramCredentialsRequestTest"
DIFFERENT: Final[tuple[Different, ...]] = (
    Different(f"{_SCRAM}.testAlterAndDescribe", _SALTED),
    Different(f"{_SCRAM}.testAlterSameThingTwice", _SALTED),
    Different(f"{_SCRAM}.testAlterEmptyUser", _WORDS),
    Different(f"{_SCRAM}.testAlterTooFewIterations", _WORDS),
    Different(f"{_SCRAM}.testAlterTooManyIterations", _WORDS),
    Different(f"{_SCRAM}.testAlterUnknownMechanism", _WORDS),
    Different(
        "ProducerFailureHandlingTest.testCannotSendToInternalTopic",
        "The test asks for a topic and then waits until there is none. It passes if the topic "
        "comes later than that look. Kafka has replaced it: now it waits for the creation.",
    ),
    Different("ReassignPartitionsCommandTest.testDisallowReplicationFactorChange", _WORDS),
    Different(
        "MetadataQuorumCommandTest.testDescribeQuorumStatusSuccessful",
        "The test expects voters without directory ids, as a static quorum has them. Ours names "
        "each voter with its directory id, as Kafka does from kraft.version 1 on (KIP-853).",
    ),
    Different(
        "ShareConsumerRackAwareTest.testShareConsumerWithRackAwareAssignor",
        "At its end the test closes its consumers one after another, and its own assignor fails "
        "when a rack has no member left. If the brokers assign the group anew in that moment, the "
        "next consumer can't be closed. No controller takes part in it.",
    ),
    Different(
        "StaticBrokerConfigTest.testInternalConfigsDoNotReturn",
        "Our list of configs is that of Kafka 4.4. The test is of 4.3 and doesn't know the keys "
        "that are new. No internal config is among what we list.",
    ),
)


def all_classes() -> list[str]:
    """Return the classes of Kafka's clients, of its tools and of its core. Raises KafkaError."""
    return [*classes_of_clients(kafka_jars(VERSION, wanted=TESTS)), *OF_TOOLS, *OF_CORE]


def meant(name: str, test: str) -> str:
    """Return why a failure is meant; empty: it is a defect."""
    full = f"{name.rpartition('.')[2]}.{test}"
    return next((row.why for row in DIFFERENT if full.startswith(row.test)), "")
