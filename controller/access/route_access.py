"""The table of what each route needs: one entry for each route, by the route's name.

Rule: a route without an entry is refused (`guard`), and a test fails. An entry says to whom the
route is open:

- `PUBLIC`: to everybody.
- `KNOWN`: to whoever has shown credentials. What is behind the route checks the rest, such as the
  owner of a token.
- `EACH_CHANGE`: the request only carries changes, and each is checked as if it had come alone.
- `EACH_PART`: each part of the request is judged where it is answered.
- `BY_RIGHTS`: to whoever meets all needs. A list is also open to whoever has shown credentials, and
  has only what the asker may see (`listing`). The needs are Kafka's (ControllerApis), and for what
  Kafka doesn't have, of the same kind.

Needs that depend on what a request says are in `request_needs`.
"""

from collections.abc import Callable, Iterator, Mapping
from enum import Enum, auto
from types import MappingProxyType
from typing import Final, NamedTuple

from controller.access.listing import Listing
from controller.access.request_needs import (
    NeedsByFacts,
    RequestFacts,
    about_oneself,
    alter_config,
    alter_configs,
    broker_of_message,
    broker_of_path,
    broker_of_query,
    change_access_token,
    commit_keys,
    create_partitions,
    create_topics,
    delete_topics,
    describe_config,
    end_session,
    key_of_query,
    list_entries,
    make_access_token,
    on_entry,
    on_named_topic,
    topic_of_query,
    watch_coordination,
    watch_resource,
)
from controller.access.rights import (
    ALTER_BRIDGE,
    ALTER_CLUSTER,
    ALTER_CONFIGS,
    ALTER_PLACEMENT,
    ALTER_QUORUM,
    CLUSTER_ACTION,
    CREATE_ANY,
    DELETE_ANY,
    DESCRIBE_BRIDGE,
    DESCRIBE_CLUSTER,
    DESCRIBE_CONFIGS,
    DESCRIBE_QUORUM,
    DESCRIBE_SESSIONS,
    READ_AUDIT,
    WRITE_SESSIONS,
    AnyOf,
    Right,
)
from metadata.image import MetadataImage
from metadata.records import AclOperation


class OpenTo(Enum):
    """To whom a route is open."""

    PUBLIC = auto()
    KNOWN = auto()
    EACH_CHANGE = auto()
    EACH_PART = auto()
    BY_RIGHTS = auto()


Needs = Callable[[RequestFacts, MetadataImage], Iterator[AnyOf]]


class RouteAccess(NamedTuple):
    """What one route needs."""

    open_to: OpenTo
    needs: Needs = lambda _facts, _image: iter(())
    broker: Callable[[RequestFacts], int | None] | None = None
    """Of a route between brokers and controllers: the broker that the request says it comes from;
    None if it doesn't say. Such a broker's own credentials have CLUSTER_ACTION there."""
    by_image: bool = False
    """The needs depend on more of the image than its access control entries."""
    listing: Listing | None = None
    """Of a list: whoever is known may ask for it, and sees what these rights show."""


_Op = AclOperation


def _all_of(*needs: AnyOf) -> RouteAccess:
    return RouteAccess(OpenTo.BY_RIGHTS, lambda _facts, _image: iter(needs))


def _by(needs: NeedsByFacts) -> RouteAccess:
    return RouteAccess(OpenTo.BY_RIGHTS, lambda facts, _image: needs(facts))


def _of_broker(broker: Callable[[RequestFacts], int | None], *besides: Right) -> RouteAccess:
    need = (CLUSTER_ACTION, *besides)
    return RouteAccess(OpenTo.BY_RIGHTS, lambda _facts, _image: iter((need,)), broker)


def _list_of(
    operation: AclOperation, of_all: Right, needs: NeedsByFacts | None = None
) -> RouteAccess:
    """A list. `needs` may ask for more than the right on all of it."""
    found = _all_of((of_all,)) if needs is None else _by(needs)
    return found._replace(listing=Listing(operation, of_all))


_PUBLIC: Final = RouteAccess(OpenTo.PUBLIC)
_KNOWN: Final = RouteAccess(OpenTo.KNOWN)
_DESCRIBES: Final = _all_of((DESCRIBE_CLUSTER,))
_DESCRIBES_QUOTAS: Final = _all_of((DESCRIBE_CONFIGS,))
_DECLARES: Final = _all_of((CREATE_ANY,), (DELETE_ANY,), (ALTER_CLUSTER,), (ALTER_CONFIGS,))
_PLACES: Final = _all_of((ALTER_PLACEMENT, ALTER_CLUSTER))
_CHANGES_TOKEN: Final = RouteAccess(OpenTo.BY_RIGHTS, change_access_token, by_image=True)
_CHANGES_QUORUM: Final = _all_of((ALTER_QUORUM, ALTER_CLUSTER))
_CHANGES_BRIDGE: Final = _all_of((ALTER_BRIDGE, ALTER_CLUSTER))

ROUTE_ACCESS: Final[Mapping[str, RouteAccess]] = MappingProxyType(
    {
        # The node.
        "live": _PUBLIC,
        "ready": _PUBLIC,
        "metrics": _PUBLIC,
        "openapi_document": _KNOWN,
        "status": _DESCRIBES,
        "describe_caller": _KNOWN,
        "describe_quorum": _all_of((DESCRIBE_QUORUM, DESCRIBE_CLUSTER)),
        "make_changes": RouteAccess(OpenTo.EACH_CHANGE),
        # Brokers and their agents.
        "metadata_fetch": _of_broker(broker_of_message),
        "alter_partition": _of_broker(broker_of_message),
        "allocate_producer_ids": _of_broker(broker_of_message),
        "assign_replicas": _of_broker(broker_of_path),
        "list_snapshots": _of_broker(lambda _facts: None, READ_AUDIT),
        "read_snapshot": _of_broker(broker_of_query, READ_AUDIT),
        # The log.
        "list_segments": _all_of((READ_AUDIT,)),
        "read_segment": _all_of((READ_AUDIT,)),
        "read_log": _all_of((READ_AUDIT,)),
        "read_signed_head": _KNOWN,
        # Hashes only: brokers' agents compare heads by them.
        "read_tile": _KNOWN,
        "make_proof": _all_of((READ_AUDIT,)),
        "watch_resource": _by(watch_resource),
        # Topics and partitions.
        "create_topics": _by(create_topics)._replace(broker=lambda _facts: None),
        "create_partitions": _by(create_partitions),
        "delete_topics": RouteAccess(OpenTo.BY_RIGHTS, delete_topics, by_image=True),
        "delete_topic": _by(on_named_topic(_Op.DELETE, "name", DELETE_ANY)),
        "list_topics": _list_of(_Op.DESCRIBE, DESCRIBE_CLUSTER),
        "describe_topic": _by(on_named_topic(_Op.DESCRIBE, "name", DESCRIBE_CLUSTER)),
        "list_partitions": _list_of(_Op.DESCRIBE, DESCRIBE_CLUSTER, topic_of_query),
        "describe_partition": _by(on_named_topic(_Op.DESCRIBE, "topic", DESCRIBE_CLUSTER)),
        # Where replicas lie, and brokers.
        "elect_leaders": _PLACES,
        "alter_reassignments": _PLACES,
        "unregister_broker": _PLACES,
        "list_reassignments": _list_of(_Op.DESCRIBE, DESCRIBE_CLUSTER, topic_of_query),
        "plan_reassignments": _DESCRIBES,
        "lose_brokers": _DESCRIBES,
        "list_brokers": _DESCRIBES,
        "describe_broker": _DESCRIBES,
        "explain_broker": _DESCRIBES,
        # Configs, features, quotas.
        "list_configs": _list_of(_Op.DESCRIBE_CONFIGS, DESCRIBE_CONFIGS),
        "describe_config": _by(describe_config),
        "alter_configs": _by(alter_configs),
        "alter_config": _by(alter_config),
        "list_features": _DESCRIBES,
        "update_features": _all_of((ALTER_CLUSTER,)),
        "alter_quotas": _all_of((ALTER_CONFIGS,)),
        "list_quotas": _DESCRIBES_QUOTAS,
        "resolve_quotas": _DESCRIBES_QUOTAS,
        # Access and credentials.
        "create_acls": _all_of((ALTER_CLUSTER,)),
        "delete_acls": _all_of((ALTER_CLUSTER,)),
        "list_acls": _DESCRIBES,
        "check_acl": _by(about_oneself("principal")),
        "alter_scram": _all_of((ALTER_CLUSTER,)),
        "erase_subject": _all_of((ALTER_CLUSTER,)),
        "describe_erasures": _DESCRIBES,
        # As the log in words: it shows names, too.
        "list_pseudonyms": _all_of((READ_AUDIT,)),
        "read_subject_keys": _of_broker(lambda _facts: None, ALTER_CLUSTER),
        "list_users": _DESCRIBES,
        "describe_user": _DESCRIBES,
        "create_token": _KNOWN,
        "renew_token": _KNOWN,
        "expire_token": _KNOWN,
        "list_tokens": _by(about_oneself("owner")),
        "create_access_token": _by(make_access_token),
        "rotate_access_token": _CHANGES_TOKEN,
        "revoke_access_token": _CHANGES_TOKEN,
        "list_access_tokens": _by(about_oneself("principal")),
        "create_join_token": _all_of((ALTER_CLUSTER,)),
        "revoke_join_token": _all_of((ALTER_CLUSTER,)),
        "list_join_tokens": _DESCRIBES,
        "join": _KNOWN,
        "authority": _PUBLIC,
        "revoke_certificates": _all_of((ALTER_CLUSTER,)),
        "reinstate_certificates": _all_of((ALTER_CLUSTER,)),
        "list_revocations": _DESCRIBES,
        # The quorum.
        "change_voters": _CHANGES_QUORUM,
        "transfer_leadership": _CHANGES_QUORUM,
        "run_archive": _CHANGES_QUORUM,
        "list_head_keys": _all_of((DESCRIBE_QUORUM, DESCRIBE_CLUSTER)),
        "change_head_key": _CHANGES_QUORUM,
        "unregister_controller": _CHANGES_QUORUM,
        # The bridge, imports, declared state.
        "describe_bridge": _all_of((DESCRIBE_BRIDGE, DESCRIBE_CLUSTER)),
        "follow_source": _CHANGES_BRIDGE,
        "set_bridge_mode": _CHANGES_BRIDGE,
        "import_records": _DECLARES,
        "keep_import_part": _DECLARES,
        "apply": _DECLARES,
        "export": _all_of((DESCRIBE_CLUSTER,), (DESCRIBE_CONFIGS,)),
        # Coordination.
        "open_session": _all_of((WRITE_SESSIONS,)),
        "renew_session": _all_of((WRITE_SESSIONS,)),
        "end_session": _by(end_session),
        "list_sessions": _all_of((DESCRIBE_SESSIONS, DESCRIBE_CLUSTER)),
        "coordination_limits": _all_of((DESCRIBE_SESSIONS, DESCRIBE_CLUSTER)),
        "enter": _by(on_entry(_Op.WRITE)),
        "change_entry": _by(on_entry(_Op.WRITE)),
        "leave": _by(on_entry(_Op.WRITE)),
        "break_grant": _by(on_entry(_Op.ALTER)),
        "list_entries": _by(list_entries),
        "get_key": _by(key_of_query("key")),
        "list_keys": _by(key_of_query("prefix", and_below=True)),
        "commit_keys": _by(commit_keys),
        "watch_coordination": _by(watch_coordination),
    }
)
"""By the name of the route in `controller.http.routes`."""
