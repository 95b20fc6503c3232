"""What aiokafka is asked to do."""

from tests.kafka.clients.calls import ClientCall
from tests.kafka.clients.libraries import LibraryCalls

_SETUP = """
import ssl
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

admin = AIOKafkaAdminClient(
    bootstrap_servers=SERVERS, security_protocol="SASL_SSL",
    ssl_context=ssl.create_default_context(cafile=CA), sasl_mechanism=MECHANISM,
    sasl_plain_username=USER, sasl_plain_password=PASSWORD,
)
await admin.start()

async def partitions(name):
    (topic,) = await admin.describe_topics([name])
    return [(one["partition"], sorted(one["replicas"])) for one in topic["partitions"]]

async def configs(kind, name):
    (response,) = await admin.describe_configs([ConfigResource(kind, name)])
    return {one[0]: one[1] for one in response.resources[0][4]}

def codes(response):
    # Name and error code of each topic.
    return [tuple(one[:2]) for one in response.to_object().popitem()[1]] if response else []
"""

_CALLS = (
    ClientCall(
        '[(one["node_id"], one["host"]) for one in (await admin.describe_cluster())["brokers"]]'
    ),
    ClientCall(
        'await admin.create_topics([NewTopic("orders", 2, 2, '
        'topic_configs={"retention.ms": "60000"})])'
    ),
    ClientCall('await admin.create_topics([NewTopic("orders", 2, 2)])'),
    ClientCall('await admin.create_topics([NewTopic("wide", 1, 9)])'),
    ClientCall('await admin.create_partitions({"orders": NewPartitions(3)})'),
    ClientCall('await partitions("orders")', until="(2,"),
    ClientCall("await admin.list_topics()"),
    ClientCall('len(await configs(ConfigResourceType.TOPIC, "orders"))'),
    ClientCall('(await configs(ConfigResourceType.TOPIC, "orders"))["retention.ms"]'),
    ClientCall('len(await configs(ConfigResourceType.BROKER, "1"))'),
    ClientCall(
        "await admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, "
        '"orders", {"cleanup.policy": "compact"})])'
    ),
    ClientCall(
        '(await configs(ConfigResourceType.TOPIC, "orders"))["cleanup.policy"]', until="compact"
    ),
    ClientCall('await admin.delete_topics(["orders"])'),
    ClientCall('await admin.delete_topics(["orders"])'),
    ClientCall("await admin.list_topics()", until="[]"),
    ClientCall("await admin.list_consumer_groups()", fails=True),
)

AIOKAFKA = LibraryCalls("aiokafka", _SETUP, _CALLS, "await admin.close()")
