"""How each library of Python logs in once, and what it tells its user when it is refused.

Each table has one call. It prints how many brokers the library knows. A library that is refused
keeps its error to itself and goes on trying, so what it logs, or tells its callback, is watched:
the call raises the first sentence of it that speaks of authentication, and after how many seconds
it came.
"""

from typing import Final

from tests.kafka.clients.calls import ClientCall
from tests.kafka.clients.libraries import LibraryCalls

_WATCH: Final = """
import logging, ssl, time, warnings
warnings.simplefilter("ignore")
began, heard = time.monotonic(), []

def hear(text):
    if "auth" in text.lower():
        heard.append((round(time.monotonic() - began, 2), text))

class Ears(logging.Handler):
    def emit(self, record):
        hear(record.getMessage())

logging.getLogger().addHandler(Ears(logging.WARNING))

def refused(error):
    hear(f"{type(error).__name__}: {error}")
    at, text = heard[0] if heard else (-1, "nobody spoke of a login")
    return RuntimeError(f"after {at} s of {time.monotonic() - began:.2f} s: {text} | {error}")
"""
_CONFLUENT: Final = """
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

def log_in():
    admin = AdminClient({
        "bootstrap.servers": SERVERS, "security.protocol": "SASL_SSL", "ssl.ca.location": CA,
        "sasl.mechanism": MECHANISM, "sasl.username": USER, "sasl.password": PASSWORD,
        "error_cb": lambda error: hear(f"{error.name()}: {error.str()}"),
    })
    for attempt in range(20):
        try:
            return len(admin.list_topics(timeout=1).brokers)
        except KafkaException as error:
            admin.poll(0)
            if heard or attempt == 19:
                raise refused(error) from error
"""
_KAFKA_PYTHON: Final = """
from kafka import KafkaAdminClient

def log_in():
    try:
        admin = KafkaAdminClient(
            bootstrap_servers=SERVERS.split(","), security_protocol="SASL_SSL", ssl_cafile=CA,
            sasl_mechanism=MECHANISM, sasl_plain_username=USER, sasl_plain_password=PASSWORD,
        )
        return len(admin.describe_cluster()["brokers"])
    except Exception as error:
        raise refused(error) from error
"""
_AIOKAFKA: Final = """
from aiokafka.admin import AIOKafkaAdminClient

async def log_in():
    admin = AIOKafkaAdminClient(
        bootstrap_servers=SERVERS, security_protocol="SASL_SSL",
        ssl_context=ssl.create_default_context(cafile=CA), sasl_mechanism=MECHANISM,
        sasl_plain_username=USER, sasl_plain_password=PASSWORD,
    )
    try:
        await admin.start()
        return len((await admin.describe_cluster())["brokers"])
    except Exception as error:
        raise refused(error) from error
    finally:
        await admin.close()
"""

LOGINS: Final = (
    LibraryCalls("confluent-kafka", _WATCH + _CONFLUENT, (ClientCall("log_in()"),)),
    LibraryCalls("kafka-python", _WATCH + _KAFKA_PYTHON, (ClientCall("log_in()"),)),
    LibraryCalls("aiokafka", _WATCH + _AIOKAFKA, (ClientCall("await log_in()"),)),
)
"""A table for each library."""
