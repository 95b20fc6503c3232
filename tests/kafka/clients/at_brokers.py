"""What client libraries of Python do at a real broker that demands a password.

Each creates a topic, sends ten messages, and reads them in a group. The table begins with making
the client, because some libraries log in there.
"""

from typing import Final

from tests.kafka.clients.calls import ClientCall
from tests.kafka.clients.libraries import LibraryCalls

_CONFLUENT = """
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

errors = []
login = {
    "bootstrap.servers": SERVERS, "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": MECHANISM, "sasl.username": USER, "sasl.password": PASSWORD,
    "error_cb": lambda error: errors.append(error.str()),
}

def create(name):
    admin = AdminClient(login)
    try:
        admin.list_topics(timeout=10)
        return [one.result() for one in admin.create_topics([NewTopic(name, 1, 1)]).values()]
    except Exception as error:
        admin.poll(1)
        raise RuntimeError(f"{error}: {errors}") from error

def produce(name):
    producer, sent = Producer(login | {"acks": "all"}), []
    for number in range(10):
        producer.produce(name, str(number), callback=lambda error, _: sent.append(error))
    producer.flush(30)
    return sent.count(None)

def consume(name):
    consumer = Consumer(login | {"group.id": f"of-{name}", "auto.offset.reset": "earliest"})
    consumer.subscribe([name])
    try:
        read = []
        while len(read) < 10:
            read += [one.value().decode() for one in consumer.consume(10, 5) if not one.error()]
        return read
    finally:
        consumer.close()
"""
_KAFKA_PYTHON = """
import warnings
warnings.simplefilter("ignore")
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer

login = dict(
    bootstrap_servers=SERVERS.split(","), security_protocol="SASL_PLAINTEXT",
    sasl_mechanism=MECHANISM, sasl_plain_username=USER, sasl_plain_password=PASSWORD,
)

def create(name):
    admin = KafkaAdminClient(**login)
    admin.create_topics({name: {"num_partitions": 1, "replication_factor": 1}})
    admin.close()

def produce(name):
    producer = KafkaProducer(acks="all", **login)
    sent = [producer.send(name, str(number).encode()) for number in range(10)]
    found = [one.get(30) for one in sent]
    producer.close()
    return len(found)

def consume(name):
    consumer = KafkaConsumer(
        name, group_id=f"of-{name}", auto_offset_reset="earliest", consumer_timeout_ms=30_000,
        **login,
    )
    read = [next(consumer).value.decode() for _ in range(10)]
    consumer.close()
    return read
"""
_AIOKAFKA = """
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

login = dict(
    bootstrap_servers=SERVERS, security_protocol="SASL_PLAINTEXT", sasl_mechanism=MECHANISM,
    sasl_plain_username=USER, sasl_plain_password=PASSWORD,
)

async def create(name):
    admin = AIOKafkaAdminClient(**login)
    try:
        await admin.start()
        await admin.create_topics([NewTopic(name, 1, 1)])
    finally:
        await admin.close()

async def produce(name):
    async with AIOKafkaProducer(acks="all", **login) as producer:
        return len([await producer.send_and_wait(name, str(n).encode()) for n in range(10)])

async def consume(name):
    consumer = AIOKafkaConsumer(
        name, group_id=f"of-{name}", auto_offset_reset="earliest", **login
    )
    async with consumer:
        return [(await consumer.getone()).value.decode() for _ in range(10)]
"""
_READ: Final = str([str(number) for number in range(10)])


def _table(library: str, setup: str, wait: str = "") -> LibraryCalls:
    name = f"by-{library}"
    calls = (
        ClientCall(f'{wait}create("{name}")'),
        # The broker knows the topic a moment after the controllers do.
        ClientCall(f'{wait}produce("{name}")', until="10"),
        ClientCall(f'{wait}consume("{name}")', until=_READ),
    )
    return LibraryCalls(library, setup, calls)


AT_BROKERS: Final = (
    _table("confluent-kafka", _CONFLUENT),
    _table("kafka-python", _KAFKA_PYTHON),
    _table("aiokafka", _AIOKAFKA, "await "),
)
"""A table for each library."""
