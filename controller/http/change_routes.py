"""Routes that change something: each request's message, and the decision that it asks for.

Each function is called as its route in `controller.http.routes` is. It gets the request with its
decoded message and returns a `RequestedChange`, which `controller.leader.changes` carries out. A
manager decides. Changes about clients lie in `controller.http.clients`.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Final

from controller.http import head_keys
from controller.http.bridge import answers as bridge
from controller.http.clients import answers as clients
from controller.http.clients.asked import Asked, MakeChange
from controller.http.coordination import answers as coordination
from controller.http.declared import answers as declared
from controller.http.imports import answers as imports
from controller.http.queries import broker_id_of, yes_or_no
from controller.http.replicas import answers as replicas
from controller.leader import resources
from controller.leader.parts import LeaderParts
from controller.leader.requested_change import RequestedChange, with_force
from controller.managers.configs import resource_of
from controller.managers.features import update_features as decide_features
from controller.managers.sweep import Sweep, a_sweep, in_rounds
from controller.result import Decided
from metadata.errors import LogbergError
from metadata.image import MetadataImage
from metadata.messages import (
    AlterConfigRequest,
    AlterConfigsReply,
    AlterConfigsRequest,
    ConfigResourceChange,
    CreateTopicsReply,
    CreateTopicsRequest,
    DeleteTopicsReply,
    DeleteTopicsRequest,
    ElectLeadersReply,
    ElectLeadersRequest,
    UnregisterBrokerReply,
    UpdateFeaturesReply,
    UpdateFeaturesRequest,
)
from metadata.messages.wire import canonical


def create_topics(leader: LeaderParts, asked: Asked) -> RequestedChange:
    """Create topics; those that are valid are one change."""
    message: CreateTopicsRequest = asked.message
    topics = leader.topics
    return RequestedChange.of(
        message,
        "CreateTopics",
        CreateTopicsReply,
        lambda image: topics.create(image, message),
        lambda _image: topics.creates(message),
    )


def delete_topics(leader: LeaderParts, asked: Asked) -> RequestedChange:
    """Delete topics by names or by ids."""
    return _deletion(leader, asked.message)


def delete_topic(leader: LeaderParts, asked: Asked) -> RequestedChange:
    """Delete the topic that the path names."""
    dry_run = yes_or_no(asked.request.query, "dryRun")
    name = asked.arguments["name"]
    return _deletion(leader, DeleteTopicsRequest(names=(name,), dry_run=dry_run))


def _deletion(leader: LeaderParts, message: DeleteTopicsRequest) -> RequestedChange:
    """There may be many topics, so the change is made in rounds."""
    deletion = leader.topics.deletion(message)
    change = RequestedChange.of(
        message,
        "DeleteTopics",
        DeleteTopicsReply,
        deletion.decide,
        deletion.partitions,
        rounds=deletion,
    )
    undivided = leader.topics.deletion(message, at_once=True)
    return change._replace(complete=deletion.complete, undivided=undivided.decide)


def unregister_broker(leader: LeaderParts, asked: Asked) -> RequestedChange:
    """Forget a broker. It may hold many replicas, so the change is made in rounds."""
    broker_id = broker_id_of(asked.arguments["id"])
    dry_run = yes_or_no(asked.request.query, "dryRun")
    force = yes_or_no(asked.request.query, "force")

    def unregister(image: MetadataImage, sweep: Sweep | None = None) -> Decided:
        return leader.brokers.unregister(image, broker_id, sweep, force=force)

    sweep = a_sweep()
    return RequestedChange(
        operation="UnregisterBroker",
        meaning=lambda: with_force(force=force),
        reply_type=UnregisterBrokerReply,
        decide=in_rounds(unregister, sweep) if not dry_run else unregister,
        in_rounds=not dry_run,
        sweep=sweep,
        mutations=lambda image: image.topics.replicas_on(broker_id),
        dry_run=dry_run,
        concerns=lambda _image: (resources.broker(broker_id),),
    )


def elect_leaders(leader: LeaderParts, asked: Asked) -> RequestedChange:
    """Elect leaders of partitions. There may be many, so the change is made in rounds."""
    message: ElectLeadersRequest = asked.message
    elections = leader.elections
    election = elections.elect(message)
    change = RequestedChange.of(
        message,
        "ElectLeaders",
        ElectLeadersReply,
        election.decide,
        lambda image: elections.asked(image, message),
        in_rounds=True,
        concerns=lambda image: resources.partitions(
            ((each.topic, each.partitions) for each in message.topic_partitions or ()), image
        ),
        rounds=election,
    )
    return change._replace(complete=election.complete)


def update_features(leader: LeaderParts, asked: Asked) -> RequestedChange:
    """Raise or lower feature levels. Switching ELR off may take rounds."""
    message: UpdateFeaturesRequest = asked.message
    own = leader.own_configs

    def update(image: MetadataImage, sweep: Sweep | None = None) -> Decided:
        return decide_features(
            image, _voters(leader), message, own, leader.key_check.records, sweep
        )

    return RequestedChange.of(
        message,
        "UpdateFeatures",
        UpdateFeaturesReply,
        update if message.dry_run else in_rounds(update),
        in_rounds=True,
        concerns=lambda _image: (resources.feature(each.feature) for each in message.updates),
    )


def alter_configs(leader: LeaderParts, asked: Asked) -> RequestedChange:
    """Change the configs of several resources."""
    return _alteration(leader, asked.message)


def alter_config(leader: LeaderParts, asked: Asked) -> RequestedChange:
    """Change the configs of the resource that the path names."""
    message: AlterConfigRequest = asked.message
    kind, name = asked.arguments["type"], asked.arguments["name"]
    resource = ConfigResourceChange(kind, name, message.configs)
    return _alteration(leader, AlterConfigsRequest((resource,), message.dry_run))


def _alteration(leader: LeaderParts, message: AlterConfigsRequest) -> RequestedChange:
    """A change of min.insync.replicas may concern many partitions: it is made in rounds."""

    def alter(image: MetadataImage, sweep: Sweep | None = None) -> Decided:
        return leader.configs.alter(image, message, sweep)

    change = RequestedChange.of(
        message,
        "AlterConfigs",
        AlterConfigsReply,
        in_rounds(alter) if not message.dry_run else alter,
        in_rounds=True,
        concerns=lambda _image: _named_configs(message),
    )
    return change._replace(meaning=lambda: leader.configs.secrets.meaning(canonical, message))


def _named_configs(message: AlterConfigsRequest) -> Iterator[resources.Resource]:
    """Yield what a request names. The manager refuses what has no such type or name."""
    for each in message.resources:
        with suppress(LogbergError):
            yield resources.config(*resource_of(each.resource_type, each.resource_name))


def _voters(leader: LeaderParts) -> tuple[int, ...]:
    return tuple(voter.node_id for voter in leader.voters())


CHANGES: Final[Mapping[str, MakeChange]] = {
    **bridge.CHANGES,
    **clients.CHANGES,
    **coordination.CHANGES,
    **declared.CHANGES,
    **head_keys.CHANGES,
    **imports.CHANGES,
    "alter_config": alter_config,
    "alter_configs": alter_configs,
    **replicas.CHANGES,
    "create_topics": create_topics,
    "delete_topic": delete_topic,
    "delete_topics": delete_topics,
    "elect_leaders": elect_leaders,
    "unregister_broker": unregister_broker,
    "update_features": update_features,
}
"""By the name of the route."""
