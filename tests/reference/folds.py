"""What each record does to the state: docs/format/replay.md, sections 1 and 2.

Rule: a function only reads and writes rows. It refuses what the page doesn't define.
"""

import base64
import re
from collections.abc import Callable
from typing import Any

from tests.reference.schema import Fields, RefusedError
from tests.reference.state import State
from tests.reference.tables import ONE, key

UNTOUCHED = -2
"""A leader that a change leaves alone."""
HEAD_KEY_REMOVED = 4
TOPIC = 2
"""The resource type of a topic's configs."""


def _register_broker(state: State, fields: Fields, offset: int) -> None:
    """The record is what holds; below logberg.version 1 the same process again keeps its state."""
    broker, now = fields["brokerId"], state.now
    known = now["brokers"].get(broker)
    same = known is not None and known["incarnationId"] == fields["incarnationId"]
    kept: Fields = {}
    if same and now["features"].get("logberg.version", {"featureLevel": 0})["featureLevel"] < 1:
        kept = {field: known[field] for field in ("brokerEpoch", "fenced", "inControlledShutdown")}
    row = {**fields, **kept}
    if not same or not row["inControlledShutdown"]:
        now["shutdowns"].pop(broker, None)
    state.put("brokers", row)


def _unregister_broker(state: State, fields: Fields, offset: int) -> None:
    _broker(state, fields["brokerId"], fields["brokerEpoch"])
    state.remove("brokers", fields["brokerId"])
    state.now["shutdowns"].pop(fields["brokerId"], None)


def _broker(state: State, broker: int, epoch: int) -> Fields:
    row = state.row("brokers", broker)
    if row["brokerEpoch"] != epoch:
        raise RefusedError(f"broker {broker} has epoch {row['brokerEpoch']}, not {epoch}")
    return row


def _fence_broker(state: State, fields: Fields, offset: int) -> None:
    state.put("brokers", _broker(state, fields["id"], fields["epoch"]), fenced=True)


def _unfence_broker(state: State, fields: Fields, offset: int) -> None:
    state.put("brokers", _broker(state, fields["id"], fields["epoch"]), fenced=False)


def _change_broker(state: State, fields: Fields, offset: int) -> None:
    row = _broker(state, fields["brokerId"], fields["brokerEpoch"])
    changed: Fields = {}
    _require(fields["fenced"] in (-1, 0, 1) and fields["inControlledShutdown"] in (0, 1), fields)
    if fields["fenced"]:
        changed["fenced"] = {1: True, -1: False}[fields["fenced"]]
    if fields["inControlledShutdown"]:
        changed["inControlledShutdown"] = True
    if fields["logDirs"]:
        changed["logDirs"] = fields["logDirs"]
    if fields["cordonedLogDirs"] is not None:
        changed["cordonedLogDirs"] = fields["cordonedLogDirs"]
    state.put("brokers", row, **changed)


def _topic(state: State, fields: Fields, offset: int) -> None:
    topics = state.now["topics"]
    _require(fields["topicId"] not in topics, fields)
    _require(all(row["name"] != fields["name"] for row in topics.values()), fields)
    state.put("topics", fields)


def _remove_topic(state: State, fields: Fields, offset: int) -> None:
    topic, now = fields["topicId"], state.now
    name = state.row("topics", topic)["name"]
    state.remove("topics", topic)
    for place in [place for place in now["partitions"] if place[0] == topic]:
        del now["partitions"][place]
    for place in [place for place in now["configs"] if place[:2] == (TOPIC, name)]:
        del now["configs"][place]


def _partition(state: State, fields: Fields, offset: int) -> None:
    state.row("topics", fields["topicId"])
    _put_partition(state, fields)


def _put_partition(state: State, fields: Fields, **changed: Any) -> None:
    """No eligible leader replicas are written as nil, never as an empty list."""
    row = {**fields, **changed}
    _require(row["partitionId"] >= 0 and row["leader"] >= -1, row)
    _require(row["leaderRecoveryState"] in (0, 1), row)
    _require(len(row["directories"]) in (0, len(row["replicas"])), row)
    for field in ("eligibleLeaderReplicas", "lastKnownElr"):
        row[field] = row[field] or None
    state.put("partitions", row)


def _change_partition(state: State, fields: Fields, offset: int) -> None:
    row = state.row("partitions", (fields["topicId"], fields["partitionId"]))
    changed = {
        field: fields[field]
        for field in (
            "isr",
            "replicas",
            "removingReplicas",
            "addingReplicas",
            "directories",
            "eligibleLeaderReplicas",
            "lastKnownElr",
        )
        if fields[field] is not None
    }
    if fields["leaderRecoveryState"] != -1:
        changed["leaderRecoveryState"] = fields["leaderRecoveryState"]
    if fields["leader"] != UNTOUCHED:
        changed["leader"] = fields["leader"]
        changed["leaderEpoch"] = row["leaderEpoch"] + 1
    changed["partitionEpoch"] = row["partitionEpoch"] + 1
    _put_partition(state, row, **changed)


def _clear_elr(state: State, fields: Fields, offset: int) -> None:
    """Each partition that had any gets a change."""
    names = {topic: row["name"] for topic, row in state.now["topics"].items()}
    _require(fields["topicName"] in ("", *names.values()), fields)
    for (topic, _), row in list(state.now["partitions"].items()):
        if fields["topicName"] in ("", names[topic]) and (
            row["eligibleLeaderReplicas"] or row["lastKnownElr"]
        ):
            _put_partition(
                state,
                row,
                eligibleLeaderReplicas=[],
                lastKnownElr=[],
                partitionEpoch=row["partitionEpoch"] + 1,
            )


def _config(state: State, fields: Fields, offset: int) -> None:
    if fields["value"] is None:
        state.now["configs"].pop(key("configs", fields), None)
    else:
        state.put("configs", fields)


def _quota(state: State, fields: Fields, offset: int) -> None:
    kinds = {kind for kind, _ in fields["entity"]}
    _require(0 < len(kinds) == len(fields["entity"]), fields)
    if fields["remove"]:
        state.now["quotas"].pop(key("quotas", fields), None)
    else:
        entity = sorted(fields["entity"], key=lambda part: part[0])
        state.put("quotas", fields, entity=entity)


def _producer_ids(state: State, fields: Fields, offset: int) -> None:
    last = state.now["producer ids"].get(ONE, {"nextProducerId": 0})
    _require(fields["nextProducerId"] > last["nextProducerId"], fields)
    state.put("producer ids", fields)


def _acl(state: State, fields: Fields, offset: int) -> None:
    _require(fields["id"] not in state.now["acls"], fields)
    state.put("acls", fields)


def _session(state: State, fields: Fields, offset: int) -> None:
    _require(fields["sessionId"] not in state.now["sessions"], fields)
    state.put("sessions", fields)


def _end_session(state: State, fields: Fields, offset: int) -> None:
    entries = state.now["entries"].values()
    _require(all(row["sessionId"] != fields["sessionId"] for row in entries), fields)
    state.remove("sessions", fields["sessionId"])


def _entry(state: State, fields: Fields, offset: int) -> None:
    """An entry stays that of its session, and at its place."""
    state.row("sessions", fields["sessionId"])
    present = state.now["entries"].get(key("entries", fields), fields)
    _require(all(present[f] == fields[f] for f in ("sessionId", "place")), fields)
    state.put("entries", fields)


def _remove_entry(state: State, fields: Fields, offset: int) -> None:
    row = state.row("entries", key("entries", fields))
    _require(row["sessionId"] == fields["sessionId"], fields)
    state.remove("entries", key("entries", fields))


def _token_base(state: State, fields: Fields, offset: int) -> None:
    _require(fields["base"] > state.now["token base"].get(ONE, {"base": 0})["base"], fields)
    state.put("token base", fields)


def _legacy_broker(state: State, fields: Fields, offset: int) -> None:
    if fields["remove"]:
        state.remove("legacy brokers", fields["brokerId"])
    else:
        state.put("legacy brokers", fields)


def _erasure(state: State, fields: Fields, offset: int) -> None:
    numbers = fields["numbers"]
    _require(bool(numbers) and all(len(number) == 8 for number in numbers), fields)
    state.put("erasures", fields)
    for number in numbers:
        pseudonym = _pseudonym(number)
        if pseudonym in state.now["pseudonyms"]:
            state.remove("pseudonyms", pseudonym)


def _pseudonym(number: bytes) -> str:
    return "p-" + base64.b32encode(number).decode()[:13].lower()


def _named(state: State, fields: Fields, offset: int) -> None:
    pseudonym = fields["pseudonym"]
    _require(re.fullmatch("p-[a-z2-7]{12}[acegikmoqsuwy246]", pseudonym) is not None, fields)
    number = base64.b32decode(pseudonym[2:].upper() + "===")
    _require(pseudonym not in state.now["pseudonyms"], fields)
    _require(number not in state.now["erasures"], fields)
    state.put("pseudonyms", fields)


def _outcome(state: State, fields: Fields, offset: int) -> None:
    """A request takes effect once, and one that may have been forgotten never again."""
    floor = state.now["floor"].get(ONE, {"key": b""})
    _require(fields["key"] not in state.now["outcomes"], fields)
    _require(fields["key"] > floor["key"], fields)
    state.put("outcomes", fields)


KNOWN = {"metadata.version": 33, "logberg.version": 6}
"""The highest levels behind which the pages say how to read on."""


def _feature(state: State, fields: Fields, offset: int) -> None:
    _require(0 <= fields["featureLevel"] <= KNOWN.get(fields["name"], 2**15), fields)
    if fields["featureLevel"] == 0:
        state.now["features"].pop(fields["name"], None)
    else:
        state.put("features", fields)


def _migration(state: State, fields: Fields, offset: int) -> None:
    _require(0 <= fields["zkMigrationState"] <= 3, fields)
    if fields["zkMigrationState"] == 0:
        state.now["migration"].pop(ONE, None)
    else:
        state.put("migration", fields)


def _head_key(state: State, fields: Fields, offset: int) -> None:
    if fields["cause"] == HEAD_KEY_REMOVED:
        state.remove("head keys", fields["controllerId"])
    else:
        state.put("head keys", fields)


def _signed_head(state: State, fields: Fields, offset: int) -> None:
    before = state.now["signed head"].get(ONE, {"size": 0})
    _require(fields["size"] > before["size"], fields)
    state.put("signed head", fields)


def _begin_epoch(state: State, fields: Fields, offset: int) -> None:
    """A new epoch discards what an earlier one left open."""
    state.drop_branch()
    start = {"epoch": state.epoch, "offset": offset, "leaderId": fields["leaderId"]}
    state.put("leader", fields)
    state.now["epochs"].setdefault(state.epoch, start)


def _begin_transaction(state: State, fields: Fields, offset: int) -> None:
    state.branch_off(offset)


def _end_transaction(state: State, fields: Fields, offset: int) -> None:
    _require(state.began is not None, fields)
    state.join()


def _attempts(state: State, fields: Fields, offset: int) -> None:
    """The last record of a life; of a controller, the eight lives whose records are the latest."""
    rows = state.now["attempts"]
    if fields["life"] not in rows:
        mine = [row for row in rows.values() if row["controllerId"] == fields["controllerId"]]
        mine.sort(key=lambda row: (row["lastMs"], row["life"]))
        for row in mine[: max(0, len(mine) - 7)]:
            del rows[row["life"]]
    state.put("attempts", fields)


def _abort_transaction(state: State, fields: Fields, offset: int) -> None:
    _require(state.began is not None, fields)
    state.drop_branch()


def _no_op(state: State, fields: Fields, offset: int) -> None:
    """Nothing but an offset."""


def _require(holds: bool, fields: Fields) -> None:
    if not holds:
        raise RefusedError(f"this can't follow on what the log says before it: {fields}")


def _puts(table: str) -> Callable[[State, Fields, int], None]:
    return lambda state, fields, _offset: state.put(table, fields)


def _removes(table: str) -> Callable[[State, Fields, int], None]:
    return lambda state, fields, _offset: state.remove(table, key(table, fields))


FOLDS: dict[str, Callable[[State, Fields, int], None]] = {
    "RegisterBrokerRecord": _register_broker,
    "UnregisterBrokerRecord": _unregister_broker,
    "FenceBrokerRecord": _fence_broker,
    "UnfenceBrokerRecord": _unfence_broker,
    "BrokerRegistrationChangeRecord": _change_broker,
    "TopicRecord": _topic,
    "RemoveTopicRecord": _remove_topic,
    "PartitionRecord": _partition,
    "PartitionChangeRecord": _change_partition,
    "ClearElrRecord": _clear_elr,
    "ConfigRecord": _config,
    "ClientQuotaRecord": _quota,
    "FeatureLevelRecord": _feature,
    "ProducerIdsRecord": _producer_ids,
    "AccessTokenRecord": _puts("access tokens"),
    "RemoveAccessTokenRecord": _removes("access tokens"),
    "JoinTokenRecord": _puts("join tokens"),
    "RemoveJoinTokenRecord": _removes("join tokens"),
    "CertificateRevocationRecord": _puts("revocations"),
    "RemoveCertificateRevocationRecord": _removes("revocations"),
    "DelegationTokenRecord": _puts("tokens"),
    "RemoveDelegationTokenRecord": _removes("tokens"),
    "UserScramCredentialRecord": _puts("credentials"),
    "RemoveUserScramCredentialRecord": _removes("credentials"),
    "AccessControlEntryRecord": _acl,
    "RemoveAccessControlEntryRecord": _removes("acls"),
    "RegisterControllerRecord": _puts("controllers"),
    "UnregisterControllerRecord": _removes("controllers"),
    "ZkMigrationStateRecord": _migration,
    "SessionRecord": _session,
    "EndSessionRecord": _end_session,
    "EntryRecord": _entry,
    "RemoveEntryRecord": _remove_entry,
    "KeyRecord": _puts("keys"),
    "RemoveKeyRecord": _removes("keys"),
    "TokenBaseRecord": _token_base,
    "BridgeRecord": _puts("bridge"),
    "LegacyBrokerRecord": _legacy_broker,
    "AttemptsRecord": _attempts,
    "HeadKeyRecord": _head_key,
    "SignedHeadRecord": _signed_head,
    "RequestOutcomeRecord": _outcome,
    "ClusterGenerationRecord": _puts("generation"),
    "ClusterKeyRecord": _puts("cluster key"),
    "SubjectKeysRecord": _puts("subject keys"),
    "SubjectErasedRecord": _erasure,
    "PseudonymRecord": _named,
    "KRaftVersionRecord": _puts("kraft version"),
    "VotersRecord": _puts("voters"),
    "BeginEpochRecord": _begin_epoch,
    "BeginTransactionRecord": _begin_transaction,
    "EndTransactionRecord": _end_transaction,
    "AbortTransactionRecord": _abort_transaction,
    "NoOpRecord": _no_op,
}
