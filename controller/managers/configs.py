"""Decides about configs of topics, brokers, groups and client metrics (KIP-133, 226, 339).

The resources of one request are checked one by one, in the order of the request. Those that pass
are one atomic change. A key whose value stays the same isn't written. As in Kafka, a broker's key
is: brokers load files such as key stores anew when they see the record. Secret values are sealed
(`config_secrets`).

While eligible leader replicas are in use, a change of min.insync.replicas first empties the ELRs
that it concerns. Their members were safe to elect under the old value only. This can be many
partitions, so it is done in rounds, and the configs are written in the last one.
"""

from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import NamedTuple

from controller.managers.config_secrets import ConfigSecrets, WrittenConfig
from controller.managers.elr import emptied, has_elr
from controller.managers.sweep import Sweep
from controller.policies import AlterConfigPolicy, ProposedConfigs, judge
from controller.result import ControllerResult
from metadata.configs.checks import check
from metadata.configs.definitions import DEFINITIONS, KINDS, is_list
from metadata.configs.effective import MIN_ISR, OwnConfigs, own_or_default
from metadata.errors import ErrorCode, LogbergError
from metadata.features import ELR_VERSION
from metadata.image import MetadataImage, Partition
from metadata.messages import (
    CLUSTER_DEFAULT,
    CONFIGS_PER_REQUEST,
    AlterConfigsReply,
    AlterConfigsRequest,
    AlteredConfigs,
    ConfigChange,
    ConfigOperation,
    ConfigResourceChange,
    error_reply,
)
from metadata.partition_key import PlainPartitionKey
from metadata.records import ConfigRecord, ConfigResourceType, PartitionChangeRecord

_STEP = 64
"""Operations on keys between two yields."""
_TOPIC, _BROKER = ConfigResourceType.TOPIC, ConfigResourceType.BROKER
Working = Generator[None, None, ControllerResult]


class _MinIsrChanges(NamedTuple):
    """Whose min.insync.replicas changes."""

    topics: frozenset[bytes]
    of_all: bool
    """The default of all brokers changes, and so do all topics without a value of their own."""


class ConfigManager:
    """Each public method reads an image and returns records."""

    def __init__(
        self,
        own: OwnConfigs,
        policy: AlterConfigPolicy | None = None,
        secrets: ConfigSecrets | None = None,
    ) -> None:
        """`own`: the controllers' own settings, under Kafka's keys. `secrets` None: no key."""
        self._own = own
        self._policy = policy
        self.secrets = secrets or ConfigSecrets()

    def alter(
        self, image: MetadataImage, request: AlterConfigsRequest, sweep: Sweep | None = None
    ) -> Working:
        """Change configs. If there is only one resource, its error is raised as LogbergError.

        POLICY_VIOLATION, as in Kafka, for more than 10,000 operations.
        """
        total = sum(len(resource.configs) for resource in request.resources)
        if total > CONFIGS_PER_REQUEST:
            raise LogbergError(
                ErrorCode.POLICY_VIOLATION,
                f"{total} operations in one request, which has at most {CONFIGS_PER_REQUEST}: send "
                "several requests",
            )
        times = Counter(map(_known_as, request.resources))
        records: list[ConfigRecord] = []
        hashes: list[bytes] = []
        results: list[AlteredConfigs] = []
        done = 0
        for resource in request.resources:
            mine: list[WrittenConfig] = []
            refusal = None
            try:
                if times[_known_as(resource)] > 1:
                    raise _invalid("the resource is in the request twice")
                mine = self._altered(image, resource)
            except LogbergError as error:
                if len(request.resources) == 1:
                    raise
                refusal = error_reply(error)
            records += [each.record for each in mine]
            hashes += [each.salted_hash for each in mine if each.salted_hash is not None]
            results.append(
                AlteredConfigs(
                    resource.resource_type,
                    resource.resource_name,
                    refusal,
                    tuple(each.record.name for each in mine),
                )
            )
            done += len(resource.configs)
            if done >= _STEP:
                done = 0
                yield
        sweep = sweep or Sweep()
        cleared = yield from _without_elr(image, _min_isr_changes(image, records), sweep)
        if sweep.more:
            return ControllerResult(
                cleared, reason="min.insync.replicas is about to change", unfinished=True
            )
        reply = AlterConfigsReply(resources=tuple(results), dry_run=request.dry_run)
        return ControllerResult((*cleared, *records), reply, salted_hashes=tuple(hashes))

    def of_new_topic(
        self, name: str, configs: Mapping[str, str | None]
    ) -> tuple[dict[str, str], list[ConfigRecord]]:
        """Return a new topic's configs and their records. Raises LogbergError INVALID_CONFIG."""
        missing = sorted(key for key, value in configs.items() if value is None)
        if missing:
            raise LogbergError(
                ErrorCode.INVALID_CONFIG,
                f"topic {name[:300]!r}: Null value not supported for topic configs: "
                f"{', '.join(missing)}",
                {"config": missing[0]},
            )
        values = {key: value for key, value in sorted(configs.items()) if value is not None}
        if values:
            check(_TOPIC, name, {}, values, self._own)
        records = [ConfigRecord(int(_TOPIC), name, key, text) for key, text in values.items()]
        return values, records

    def of_import(
        self, image: MetadataImage, broker: str, values: Mapping[str, str]
    ) -> list[WrittenConfig]:
        """Return the records of configs that a broker, or the default of all, gets from elsewhere.

        The broker need not be registered. Raises LogbergError.
        """
        resource_of("broker", broker)
        if MIN_ISR in values and image.features.levels.get(ELR_VERSION, 0) > 0:
            raise LogbergError(
                ErrorCode.INVALID_CONFIG,
                f"{MIN_ISR}: while ELR is enabled, set it with an alteration of configs",
                {"config": MIN_ISR},
            )
        before = image.configs.of(_BROKER, broker)
        check(_BROKER, broker, before, {**before, **values}, self._own)
        return [
            self.secrets.written(image, _BROKER, broker, key, value)
            for key, value in values.items()
        ]

    def _altered(self, image: MetadataImage, resource: ConfigResourceChange) -> list[WrittenConfig]:
        """Return the records of one resource. Raises LogbergError."""
        kind, name = resource_of(resource.resource_type, resource.resource_name)
        _check_operations(resource.configs)
        before = image.configs.of(kind, name)
        after = dict(before)
        changed: dict[str, str | None] = {}
        for change in resource.configs:
            old = before.get(change.name)
            new = _new_value(kind, change, old)
            if new is None:
                after.pop(change.name, None)
            else:
                after[change.name] = new
            if new != old or (kind == _BROKER and new is not None):
                changed[change.name] = new
        check(kind, name, before, after, self._own)
        _check_elr(image, kind, name, changed)
        check_exists(image, kind, name)
        if self._policy is not None:
            judge(
                self._policy.validate,
                ProposedConfigs(resource.resource_type, name, changed),
                f"{resource.resource_type} {resource.resource_name!r}",
            )
        return [
            self.secrets.written(image, kind, name, key, value) for key, value in changed.items()
        ]


def elr_safety_records(image: MetadataImage, own: OwnConfigs) -> list[ConfigRecord]:
    """Return the records with which ELR is switched on: one min ISR for all brokers (KIP-966).

    The default of all brokers gets a value, and no broker keeps one of its own.
    """
    records = [
        ConfigRecord(int(_BROKER), name, MIN_ISR, None)
        for name in image.configs.named(_BROKER)
        if name and image.configs.value(_BROKER, name, MIN_ISR) is not None
    ]
    if image.configs.value(_BROKER, "", MIN_ISR) is None:
        value = own_or_default(_TOPIC, MIN_ISR, own)
        records.insert(0, ConfigRecord(int(_BROKER), "", MIN_ISR, value))
    return records


def resource_of(kind: str, name: str) -> tuple[ConfigResourceType, str]:
    """Return type and name of a resource, as the log has them. Raises LogbergError."""
    resource_type = KINDS.get(kind)
    if resource_type is None:
        raise _invalid(
            f"there is no type of resource {kind[:50]!r} that has configs; the types are "
            f"{', '.join(KINDS)}"
        )
    if resource_type != _BROKER:
        if not name:
            raise _invalid(f"a {kind} has a name; there is no default of all of them")
        return resource_type, name
    if name in ("", CLUSTER_DEFAULT):
        return resource_type, ""
    if not name.isascii() or not name.isdecimal() or str(int(name[:20])) != name:
        raise _invalid(
            f"broker {name[:50]!r} is no broker's number; {CLUSTER_DEFAULT!r} is the default of "
            "all brokers"
        )
    return resource_type, name


def shown_name(resource_type: int, name: str) -> str:
    """Return a resource's name as it is shown: the default of all brokers has none in the log."""
    return CLUSTER_DEFAULT if resource_type == _BROKER and not name else name


def _known_as(resource: ConfigResourceChange) -> tuple[str, str]:
    """Return one name for one resource: the default of all brokers has two."""
    return resource.resource_type, resource.resource_name or CLUSTER_DEFAULT


def _check_operations(changes: Sequence[ConfigChange]) -> None:
    twice = [name for name, times in Counter(c.name for c in changes).items() if times > 1]
    if twice:
        raise _invalid(f"config {twice[0]!r} is in the request twice", twice[0])
    for change in changes:
        if change.value is None and change.operation is not ConfigOperation.DELETE:
            raise _invalid(
                f"config {change.name!r}: {change.operation} needs a value; delete has none",
                change.name,
            )


def _new_value(kind: ConfigResourceType, change: ConfigChange, old: str | None) -> str | None:
    """Return the value that an operation leads to. Raises LogbergError INVALID_CONFIG."""
    match change.operation:
        case ConfigOperation.SET:
            return change.value
        case ConfigOperation.DELETE:
            return None
    if not is_list(kind, change.name):
        raise LogbergError(
            ErrorCode.INVALID_CONFIG,
            f"Can't {change.operation.name} to key {change.name} because its type is not LIST.",
            {"config": change.name},
        )
    assert change.value is not None
    if old is None:
        old = DEFINITIONS[kind][change.name].default or ""
    entries = [entry for entry in old.split(",") if entry]
    for entry in _split(change.value):
        if change.operation is ConfigOperation.SUBTRACT:
            if entry in entries:
                entries.remove(entry)
        elif entry not in entries:
            entries.append(entry)
    return ",".join(entries)


def _split(text: str) -> list[str]:
    """Divide a text at its commas as Java does: without empty entries at the end."""
    entries = text.split(",")
    while len(entries) > 1 and not entries[-1]:
        entries.pop()
    return entries


def _check_elr(
    image: MetadataImage, kind: ConfigResourceType, name: str, changed: Mapping[str, str | None]
) -> None:
    """Keep one min ISR for all brokers while ELR is on (KIP-966). Raises INVALID_CONFIG."""
    if kind != _BROKER or MIN_ISR not in changed or not image.features.levels.get(ELR_VERSION, 0):
        return
    if name:
        why = "Broker-level min.insync.replicas cannot be altered while ELR is enabled."
    elif changed[MIN_ISR] is None:
        why = "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
    else:
        return
    raise LogbergError(ErrorCode.INVALID_CONFIG, why, {"config": MIN_ISR})


def check_exists(image: MetadataImage, kind: ConfigResourceType, name: str) -> None:
    """Raise LogbergError for a topic or a node that isn't there. Others need not exist."""
    if kind == _TOPIC and image.topics.named(name) is None:
        raise LogbergError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic named {name[:300]!r}"
        )
    if kind == _BROKER and name:
        node_id = int(name)
        cluster = image.cluster
        if cluster.brokers.get(node_id) is None and cluster.controllers.get(node_id) is None:
            raise LogbergError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"there is no broker {name}")


def _min_isr_changes(image: MetadataImage, records: Sequence[ConfigRecord]) -> _MinIsrChanges:
    """Return whose min ISR the records change; nobody's while ELR is off."""
    topics: set[bytes] = set()
    of_all = False
    if not image.features.levels.get(ELR_VERSION, 0):
        return _MinIsrChanges(frozenset(), of_all=False)
    for record in records:
        kind, name = record.resource_type, record.resource_name
        if record.name != MIN_ISR or image.configs.value(kind, name, MIN_ISR) == record.value:
            continue
        if kind == _TOPIC:
            topic = image.topics.named(name)
            assert topic is not None
            topics.add(topic.topic_id)
        elif kind == _BROKER and not name:
            of_all = True
    return _MinIsrChanges(frozenset(topics), of_all)


def _without_elr(
    image: MetadataImage, whose: _MinIsrChanges, sweep: Sweep
) -> Generator[None, None, list[PartitionChangeRecord]]:
    """Return the changes of the next round that empty the ELRs of these topics.

    A replica is in an ELR only if the ISR is too small. So with `of_all`, only topics that lack
    in-sync replicas are looked at. Kafka empties the ELR of a partition whose ISR is empty, too.
    Such a partition has no leader, so nothing was written under the new value, and its ELR is all
    that can be elected without loss: it is kept.
    """
    if not whose.topics and not whose.of_all:
        return []
    topics = image.topics
    concerned: dict[bytes, bool] = dict.fromkeys(whose.topics, True)

    def keys() -> Iterator[PlainPartitionKey]:
        ids = sorted(whose.topics)
        if whose.of_all:
            yield from (
                (topic_id, number)
                for topic_id, _ in topics.lacks.unordered_items()
                if topic_id not in whose.topics
                for number in topics.ids_of(topic_id)
            )
        yield from ((topic_id, number) for topic_id in ids for number in topics.ids_of(topic_id))

    def takes_the_default(topic_id: bytes) -> bool:
        known = concerned.get(topic_id)
        if known is None:
            name = topics.by_id[topic_id].name
            known = image.configs.value(int(_TOPIC), name, MIN_ISR) is None
            concerned[topic_id] = known
        return known

    def rank(key: PlainPartitionKey) -> int | None:
        partition = topics.partitions[key]
        return 0 if _may_lose_elr(partition) and takes_the_default(key[0]) else None

    def change(key: PlainPartitionKey) -> PartitionChangeRecord | None:
        partition = topics.partitions.get(key)
        if partition is None or not _may_lose_elr(partition):
            return None
        return emptied(key, partition)

    return (yield from sweep.changes(keys, rank, change))


def _may_lose_elr(partition: Partition) -> bool:
    """A partition without an ISR keeps its ELR: nobody else could be elected."""
    return bool(partition.isr and has_elr(partition))


def _invalid(message: str, key: str = "") -> LogbergError:
    return LogbergError(ErrorCode.INVALID_REQUEST, message, {"config": key} if key else None)
