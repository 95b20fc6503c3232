"""What kafka-python is asked to do."""

from tests.kafka.clients.calls import ClientCall
from tests.kafka.clients.libraries import LibraryCalls

_SETUP = """
import warnings
warnings.simplefilter("ignore")
from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import *
from kafka.admin import ACL, ACLFilter, ACLOperation, ACLPermissionType, ACLResourcePatternType
from kafka.admin import ConfigResource, ConfigResourceType, NewPartitions, NewTopic
from kafka.admin import ResourcePattern, ResourcePatternFilter, ResourceType

admin = KafkaAdminClient(
    bootstrap_servers=SERVERS.split(","), security_protocol="SASL_SSL", ssl_cafile=CA,
    sasl_mechanism=MECHANISM, sasl_plain_username=USER, sasl_plain_password=PASSWORD,
)
acl = ACL("User:bob", "*", ACLOperation.READ, ACLPermissionType.ALLOW,
          ResourcePattern(ResourceType.TOPIC, "orders"))
any_acl = ACLFilter(None, None, ACLOperation.ANY, ACLPermissionType.ANY,
                    ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY))

def partitions(name):
    (topic,) = admin.describe_topics([name])
    return [(one["partition_index"], sorted(one["replica_nodes"])) for one in topic["partitions"]]

def configs(kind, name, config_filter="all"):
    found = admin.describe_configs([ConfigResource(kind, name)], config_filter=config_filter)
    return found[kind.lower()][name]

def brief(response):
    # The results without names and times.
    found = response if isinstance(response, dict) else response.to_dict()
    results = found.get("topics") or found.get("results") or found
    return [(one["name"], one["error_code"]) for one in results]
"""

_CALLS = (
    ClientCall('[(one["broker_id"], one["host"]) for one in admin.describe_cluster()["brokers"]]'),
    ClientCall(
        'brief(admin.create_topics({"orders": {"num_partitions": 2, "replication_factor": 2, '
        '"configs": {"retention.ms": "60000"}}}))'
    ),
    ClientCall('admin.create_topics(["orders"])', fails=True),
    ClientCall(
        'admin.create_topics({"wide": {"num_partitions": 1, "replication_factor": 9}})', fails=True
    ),
    ClientCall('brief(admin.create_topics(["checked"], validate_only=True))'),
    ClientCall('brief(admin.create_partitions({"orders": 3}))'),
    ClientCall('partitions("orders")', until="(2,"),
    ClientCall("admin.list_topics()"),
    ClientCall('len(configs("TOPIC", "orders"))'),
    ClientCall(
        '{key: (one["value"], one["config_source"]) '
        'for key, one in configs("TOPIC", "orders").items() '
        'if key in ("retention.ms", "cleanup.policy", "segment.bytes")}'
    ),
    ClientCall('len(configs("BROKER", "1"))'),
    ClientCall(
        'admin.alter_configs([ConfigResource("TOPIC", "orders", '
        '{"cleanup.policy": "compact", "min.insync.replicas": "2"})])'
    ),
    ClientCall(
        '{key: one["value"] for key, one in configs("TOPIC", "orders", "modified").items()}',
        until="compact",
    ),
    ClientCall('admin.alter_configs([ConfigResource("TOPIC", "orders", {"segment.ms": "soon"})])'),
    ClientCall("admin.create_acls([acl])"),
    ClientCall("admin.describe_acls(any_acl)"),
    ClientCall("[acls for _, acls, _ in admin.delete_acls([any_acl])]"),
    ClientCall(
        "admin.alter_user_scram_credentials([UserScramCredentialUpsertion("
        '"erin", "SCRAM-SHA-512", "secret")])'
    ),
    ClientCall(
        'admin.alter_user_scram_credentials([UserScramCredentialDeletion("erin", "SCRAM-SHA-512")])'
    ),
    ClientCall('admin.alter_partition_reassignments({TopicPartition("orders", 0): [3, 1]})'),
    ClientCall('partitions("orders")[0]', until="(0, [1, 3])"),
    ClientCall("admin.list_partition_reassignments()", until="{}"),
    ClientCall('admin.elect_leaders(0, {"orders": [0]}).replica_election_results'),
    ClientCall(
        '{name: one["finalized"] for name, one in admin.describe_features().items() '
        'if name == "metadata.version"}'
    ),
    ClientCall(
        '[one["replica_id"] for one in '
        'admin.describe_metadata_quorum()["topics"][0]["partitions"][0]["current_voters"]]'
    ),
    ClientCall('brief(admin.delete_topics(["orders"]))'),
    ClientCall('admin.delete_topics(["orders"])', fails=True),
    ClientCall("admin.list_topics()", until="[]"),
)

KAFKA_PYTHON = LibraryCalls("kafka-python", _SETUP, _CALLS, "admin.close()")
