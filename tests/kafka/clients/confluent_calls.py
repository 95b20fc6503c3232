"""What confluent-kafka (librdkafka) is asked to do."""

from tests.kafka.clients.calls import ClientCall
from tests.kafka.clients.libraries import LibraryCalls

_SETUP = """
from confluent_kafka import ElectionType, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import *
from confluent_kafka.admin import AclBinding, AclBindingFilter, AclOperation, AclPermissionType
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions
from confluent_kafka.admin import NewTopic, ResourcePatternType, ResourceType, ScramCredentialInfo
from confluent_kafka.admin import ScramMechanism, UserScramCredentialDeletion
from confluent_kafka.admin import UserScramCredentialUpsertion

admin = AdminClient({
    "bootstrap.servers": SERVERS, "security.protocol": "SASL_SSL", "ssl.ca.location": CA,
    "sasl.mechanism": MECHANISM, "sasl.username": USER, "sasl.password": PASSWORD,
})
topic = lambda name, **entries: ConfigResource(
    ConfigResource.Type.TOPIC, name,
    incremental_configs=[
        ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        for key, value in entries.items()
    ],
)
acl = AclBinding(
    ResourceType.TOPIC, "orders", ResourcePatternType.LITERAL, "User:bob", "*",
    AclOperation.READ, AclPermissionType.ALLOW,
)
any_acl = AclBindingFilter(
    ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY,
    AclPermissionType.ANY,
)

def done(futures):
    # Results by name; a refusal is raised.
    return {str(getattr(key, "name", key)): future.result() for key, future in futures.items()}

def partitions(name):
    found = admin.list_topics(name, timeout=10).topics[name].partitions.values()
    return [(one.id, sorted(one.replicas), sorted(one.isrs)) for one in found]

def configs(kind, name):
    return done(admin.describe_configs([ConfigResource(kind, name)])).popitem()[1]
"""

_CALLS = (
    ClientCall(
        "sorted((one.id, one.host) for one in admin.list_topics(timeout=10).brokers.values())"
    ),
    ClientCall(
        "[(one.id, one.host) for one in admin.describe_cluster(request_timeout=10).result().nodes]"
    ),
    ClientCall(
        'done(admin.create_topics([NewTopic("orders", 2, 2, config={"retention.ms": "60000"})]))'
    ),
    ClientCall('done(admin.create_topics([NewTopic("orders", 2, 2)]))', fails=True),
    ClientCall('done(admin.create_topics([NewTopic("wide", 1, 9)]))', fails=True),
    ClientCall('done(admin.create_topics([NewTopic("checked", 1, 3)], validate_only=True))'),
    ClientCall('done(admin.create_partitions([NewPartitions("orders", 3)]))'),
    ClientCall('partitions("orders")', until="(2,"),
    ClientCall(
        "[(one.id, len(one.replicas), one.leader is not None) for one in "
        'done(admin.describe_topics(TopicCollection(["orders"])))["orders"].partitions]'
    ),
    ClientCall('len(configs("TOPIC", "orders"))'),
    ClientCall(
        '{one.name: (one.value, one.source) for one in configs("TOPIC", "orders").values() '
        'if one.name in ("retention.ms", "cleanup.policy", "segment.bytes")}'
    ),
    ClientCall('len(configs("BROKER", "1"))'),
    ClientCall(
        'done(admin.incremental_alter_configs([topic("orders", **{"cleanup.policy": "compact"})]))'
    ),
    ClientCall('configs("TOPIC", "orders")["cleanup.policy"].value', until="compact"),
    ClientCall(
        'done(admin.incremental_alter_configs([topic("orders", **{"segment.ms": "soon"})]))',
        fails=True,
    ),
    ClientCall(
        'done(admin.alter_configs([ConfigResource("TOPIC", "orders", '
        'set_config={"retention.ms": "70000"})]))'
    ),
    ClientCall(
        '[configs("TOPIC", "orders")[key].value for key in ("retention.ms", "cleanup.policy")]',
        until="70000",
    ),
    ClientCall("done(admin.create_acls([acl]))"),
    ClientCall("admin.describe_acls(any_acl).result()"),
    ClientCall("done(admin.delete_acls([any_acl]))"),
    ClientCall(
        'done(admin.alter_user_scram_credentials([UserScramCredentialUpsertion("dora", '
        'ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 8192), b"secret")]))'
    ),
    ClientCall(
        "{user: [(one.mechanism.name, one.iterations) for one in found.scram_credential_infos] "
        "for user, found in admin.describe_user_scram_credentials().result().items()}"
    ),
    ClientCall(
        'done(admin.alter_user_scram_credentials([UserScramCredentialDeletion("dora", '
        "ScramMechanism.SCRAM_SHA_256)]))"
    ),
    ClientCall(
        'admin.elect_leaders(ElectionType.PREFERRED, [TopicPartition("orders", 0)]).result()'
    ),
    ClientCall('done(admin.delete_topics(["orders"]))'),
    ClientCall('done(admin.delete_topics(["orders"]))', fails=True),
    ClientCall('"orders" in admin.list_topics(timeout=10).topics', until="False"),
    ClientCall("admin.list_consumer_groups(request_timeout=10).result().errors", fails=False),
)

CONFLUENT = LibraryCalls("confluent-kafka", _SETUP, _CALLS)
