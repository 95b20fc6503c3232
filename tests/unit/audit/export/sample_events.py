"""Events to export: attempts and changes, plain and hostile."""

from audit.export.events import ExportedEvent

ATTEMPT = ExportedEvent(
    offset=41,
    cluster_id="AAAAAAAAAAAAAAAAAAAAAQ",
    is_attempt=True,
    refused=True,
    only_logged=False,
    times=37,
    time_ms=1_700_000_000_000,
    last_ms=1_700_000_009_000,
    principal="User:mallory",
    on_behalf_of="",
    auth_method="token",
    address="203.0.113.9",
    client_id="a tool",
    operation="create_topics",
    resources=("topic:orders",),
    code="TOPIC_AUTHORIZATION_FAILED",
    reason="CREATE on TOPIC orders",
    request_id="",
    request="POST /v1/topics",
    answer="403 it lacks a right",
    controller_id=2,
)
LOGIN = ATTEMPT._replace(
    principal="",
    auth_method="",
    operation="login",
    resources=("user:alice",),
    code="SASL_AUTHENTICATION_FAILED",
    reason="user name or token is not known here",
    request="",
    answer="",
    client_id="",
    times=1,
    last_ms=1_700_000_000_000,
)
CHANGE = ATTEMPT._replace(
    is_attempt=False,
    refused=False,
    times=3,
    last_ms=1_700_000_000_000,
    principal="Broker:7",
    on_behalf_of="User:ana",
    operation="CreateTopics",
    resources=("topic:orders", "partition:orders-0"),
    code="",
    reason="for the shop",
    request_id="AAAAAAAAAAAAAAAAAAAAAg",
    request="",
    answer="",
    controller_id=-1,
)
SEVERAL = ATTEMPT._replace(
    principal="*",
    operation="*",
    address="*",
    resources=(),
    reason="",
    only_logged=True,
    refused=False,
)
EVENTS = {"attempt": ATTEMPT, "login": LOGIN, "change": CHANGE, "several": SEVERAL}
TEXTS = (
    *("principal", "on_behalf_of", "auth_method", "address", "client_id", "operation", "code"),
    *("reason", "request_id", "request", "answer", "cluster_id"),
)
HOSTILE = (
    "a|b",
    "a=b act=accepted",
    "back\\slash|",
    "two\nlines",
    "two\r\nCEF:0|x|x|1|x|x|0|act=accepted",
    "null\x00bell\x07escape\x1b[31m",
    "next\x85line\u2028separator\u2029",
    "\u202ereversed\u200b",
    "lone \ud800",
    '"}\n{"class_uid":0',
    "\\",
    "\\n",
    "=|=",
    " ",
)


def hostile(event: ExportedEvent, text: str) -> ExportedEvent:
    """The same event with a text in every field that has one."""
    return event._replace(
        **{name: getattr(event, name) + text for name in TEXTS},
        resources=tuple(word + text for word in event.resources),
    )
