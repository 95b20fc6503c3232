"""What a request needs, by what it says: the topics that it names, the user whom it is about.

Rule: a topic's own right comes first in a need, and the cluster's after it. `route_access` says
which route uses which function here. A function gets the facts of a request and yields its needs;
`broker_of_…` returns the broker that a request says it comes from.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from controller.access.rights import (
    ALTER_CLUSTER,
    ALTER_CONFIGS,
    CLUSTER_ACTION,
    CREATE_ANY,
    DELETE_ANY,
    DESCRIBE_CLUSTER,
    DESCRIBE_CONFIGS,
    READ_AUDIT,
    WRITE_SESSIONS,
    AnyOf,
    Right,
    on_cluster,
    on_topic,
)
from metadata.acl_names import SESSIONS, coordination_name
from metadata.image import MetadataImage
from metadata.internal_topics import INTERNAL_TOPICS
from metadata.messages import (
    AlterConfigsRequest,
    CommitRequest,
    CoordinationWatchRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    EndSessionRequest,
)
from metadata.records import AclOperation, AclResourceType
from metadata.uuids import UuidError, parse_uuid

_Op = AclOperation


class RequestFacts(NamedTuple):
    """What a request says, as far as its needs depend on it."""

    asker: str
    """The principal for whom it asks."""
    arguments: Mapping[str, str]
    """What stands in the path at the places in braces."""
    query: Mapping[str, str]
    message: Any = None
    """The body, decoded; None if the route has none."""


NeedsByFacts = Callable[[RequestFacts], Iterator[AnyOf]]
"""Needs that depend on nothing but the request."""


# -- topics, partitions, configs ------------------------------------------------------------------


def create_topics(facts: RequestFacts) -> Iterator[AnyOf]:
    """A broker of Kafka's creates Kafka's internal topics in its own name."""
    message: CreateTopicsRequest = facts.message
    for topic in message.topics:
        need = on_topic(_Op.CREATE, topic.name), CREATE_ANY
        yield (*need, CLUSTER_ACTION) if topic.name in INTERNAL_TOPICS else need


def create_partitions(facts: RequestFacts) -> Iterator[AnyOf]:
    """Each topic that gets more partitions needs ALTER."""
    message: CreatePartitionsRequest = facts.message
    for topic in message.topics:
        yield on_topic(_Op.ALTER, topic.name), ALTER_CLUSTER


def delete_topics(facts: RequestFacts, image: MetadataImage) -> Iterator[AnyOf]:
    """By names, and by ids. An id without a topic needs nothing: nothing can be deleted."""
    message: DeleteTopicsRequest = facts.message
    for name in message.names:
        yield on_topic(_Op.DELETE, name), DELETE_ANY
    for text in message.topic_ids:
        try:
            topic = image.topics.by_id.get(parse_uuid(text))
        except UuidError:
            continue
        if topic is not None:
            yield on_topic(_Op.DELETE, topic.name)._replace(asked_by_id=text), DELETE_ANY


def on_named_topic(operation: AclOperation, name: str, besides: Right) -> NeedsByFacts:
    """The topic that the path names, at the place `name`, needs a right on it."""

    def needs(facts: RequestFacts) -> Iterator[AnyOf]:
        yield on_topic(operation, facts.arguments[name]), besides

    return needs


def topic_of_query(facts: RequestFacts) -> Iterator[AnyOf]:
    """Of lists of partitions: of one topic, or of all."""
    topic = facts.query.get("topic")
    if topic:
        yield on_topic(_Op.DESCRIBE, topic), DESCRIBE_CLUSTER
    else:
        yield (DESCRIBE_CLUSTER,)


def _config(kind: str, name: str, operation: AclOperation, of_all: Right) -> AnyOf:
    """As in Kafka, configs of brokers and of client metrics are the cluster's."""
    if kind == "topic":
        return on_topic(operation, name), of_all
    if kind == "group":
        return Right(operation, AclResourceType.GROUP, name), of_all
    return (of_all,)


def alter_configs(facts: RequestFacts) -> Iterator[AnyOf]:
    """Each resource whose configs change needs ALTER_CONFIGS."""
    message: AlterConfigsRequest = facts.message
    for each in message.resources:
        yield _config(each.resource_type, each.resource_name, _Op.ALTER_CONFIGS, ALTER_CONFIGS)


def alter_config(facts: RequestFacts) -> Iterator[AnyOf]:
    """The resource that the path names needs ALTER_CONFIGS."""
    kind, name = facts.arguments["type"], facts.arguments["name"]
    yield _config(kind, name, _Op.ALTER_CONFIGS, ALTER_CONFIGS)


def describe_config(facts: RequestFacts) -> Iterator[AnyOf]:
    """The resource that the path names needs DESCRIBE_CONFIGS."""
    kind, name = facts.arguments["type"], facts.arguments["name"]
    yield _config(kind, name, _Op.DESCRIBE_CONFIGS, DESCRIBE_CONFIGS)


def watch_resource(facts: RequestFacts) -> Iterator[AnyOf]:
    """A topic may be watched by whoever may describe it; all else is the log's."""
    kind, _, name = facts.query.get("resource", "").partition(":")
    if kind == "partition":
        name = name.rpartition("-")[0]
    if kind in ("topic", "partition") and name:
        yield on_topic(_Op.DESCRIBE, name), READ_AUDIT
    else:
        yield (READ_AUDIT,)


# -- clients --------------------------------------------------------------------------------------


def about_oneself(parameter: str) -> NeedsByFacts:
    """Everybody may ask about oneself; about others who may describe the cluster."""

    def needs(facts: RequestFacts) -> Iterator[AnyOf]:
        if facts.query.get(parameter) != facts.asker:
            yield (DESCRIBE_CLUSTER,)

    return needs


def make_access_token(facts: RequestFacts) -> Iterator[AnyOf]:
    """As for delegation tokens: CREATE_TOKENS on the user that is to own the token (KIP-373)."""
    yield _tokens_of(facts.message.principal)


def change_access_token(facts: RequestFacts, image: MetadataImage) -> Iterator[AnyOf]:
    """As `make_access_token`. A token that doesn't exist needs ALTER on the cluster."""
    token = image.credentials.access_tokens.get(facts.arguments["id"])
    yield (ALTER_CLUSTER,) if token is None else _tokens_of(token.principal)


def _tokens_of(principal: str) -> AnyOf:
    kind, _, name = principal.partition(":")
    if kind != "User" or not name:
        return (ALTER_CLUSTER,)
    return Right(_Op.CREATE_TOKENS, AclResourceType.USER, principal), ALTER_CLUSTER


# -- coordination ---------------------------------------------------------------------------------


def on_entry(operation: AclOperation) -> NeedsByFacts:
    """The group, election or lock that the message names needs a right on it."""

    def needs(facts: RequestFacts) -> Iterator[AnyOf]:
        name = coordination_name(facts.message.kind, facts.message.name)
        yield (on_cluster(operation, name),)

    return needs


def end_session(facts: RequestFacts) -> Iterator[AnyOf]:
    """To end a session needs WRITE on sessions. To revoke one needs ALTER."""
    message: EndSessionRequest = facts.message
    yield (on_cluster(_Op.ALTER, SESSIONS) if message.revoke else WRITE_SESSIONS,)


def list_entries(facts: RequestFacts) -> Iterator[AnyOf]:
    """A list of all of a kind needs the right on every name that begins so."""
    if "sessionId" in facts.query:
        yield (on_cluster(_Op.READ, SESSIONS),)
    else:
        name = facts.query.get("name", "")
        right = on_cluster(_Op.READ, coordination_name(facts.query.get("kind", ""), name))
        yield (right._replace(and_below=not name),)


def key_of_query(parameter: str, *, and_below: bool = False) -> NeedsByFacts:
    """The key that the query names needs READ; `and_below`: all keys that begin so need it."""

    def needs(facts: RequestFacts) -> Iterator[AnyOf]:
        right = on_cluster(_Op.READ, coordination_name("key", facts.query.get(parameter, "")))
        yield (right._replace(and_below=and_below),)

    return needs


def commit_keys(facts: RequestFacts) -> Iterator[AnyOf]:
    """A key that changes needs WRITE. What a commit only compares needs DESCRIBE."""
    message: CommitRequest = facts.message
    for operation in message.operations:
        yield (on_cluster(_Op.WRITE, coordination_name("key", operation.key)),)
    for check in message.checks:
        yield (on_cluster(_Op.DESCRIBE, coordination_name("key", check.key)),)
    for fence in message.fences:
        name = coordination_name(fence.kind, fence.name)
        yield (on_cluster(_Op.DESCRIBE, name),)
    if message.session_id is not None or not message.operations:
        yield (WRITE_SESSIONS,)
    if message.tokens_above is not None:
        yield (on_cluster(_Op.ALTER, SESSIONS),)


def watch_coordination(facts: RequestFacts) -> Iterator[AnyOf]:
    """Each key, prefix or entry that is watched needs READ."""
    message: CoordinationWatchRequest = facts.message
    for scope in message.scopes:
        if scope.key is not None:
            name = coordination_name("key", scope.key)
        elif scope.prefix is not None:
            name = coordination_name("key", scope.prefix)
        else:
            name = coordination_name(scope.kind or "", scope.name or "")
        yield (on_cluster(_Op.READ, name)._replace(and_below=scope.prefix is not None),)


# -- brokers --------------------------------------------------------------------------------------


def broker_of_message(facts: RequestFacts) -> int | None:
    """Return the broker that the body names."""
    found: int = facts.message.broker_id
    return found


def broker_of_path(facts: RequestFacts) -> int | None:
    """Return the broker that the path names; -1, if what stands there is no number."""
    return _number(facts.arguments.get("id", ""))


def broker_of_query(facts: RequestFacts) -> int | None:
    """Return the broker that the query names; None: it names none."""
    text = facts.query.get("brokerId")
    return None if text is None else _number(text)


def _number(text: str) -> int | None:
    """Return a number; -1, which is no broker's, for what is none."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 10 else -1
