"""Configs: Kafka's own answers about operations, values and resolution, held against ours.

`tests/oracles/configs` says how the answers were got. Differences that we want are in DIFFERS.
"""

import re
from typing import Any

import pytest

from controller.managers.configs import ConfigManager
from controller.managers.sweep import ROUND, Sweep
from metadata.configs.checks import check
from metadata.configs.definitions import DEFINITIONS, KINDS
from metadata.configs.effective import Effective, OwnConfigs
from metadata.errors import LogbergError
from metadata.features import ELR_VERSION, METADATA_VERSION
from metadata.image import EMPTY, MetadataDelta
from metadata.messages import (
    AlterConfigsRequest,
    ConfigChange,
    ConfigOperation,
    ConfigResourceChange,
)
from metadata.records import (
    ConfigRecord,
    ConfigResourceType,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    TopicRecord,
)
from tests.oracles.configs.answers import CASES, VALUES, broker_refuses, read

NODE = 9
"""The controller that decides, in Kafka's answers and in ours."""
TOPIC, BROKER = ConfigResourceType.TOPIC, ConfigResourceType.BROKER
MIN_ISR = "min.insync.replicas"
KINDS_BY_CODE = {int(code): kind for kind, code in KINDS.items()}
ASKED = [case for case in read(CASES) if "ask" in case]
OF_VALUES = [
    row
    for row in read(VALUES)
    if DEFINITIONS[KINDS[row["kind"]]][row["key"]].type != "class"
    or DEFINITIONS[KINDS[row["kind"]]][row["key"]].dynamic == ""
]
"""Of a class, Kafka's broker looks whether it is there. We can't."""
RESOLVED = [case for case in read(CASES) if "effective" in case]


def run_now(steps):
    """Take all steps of a decision at once, and return its result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def image_with(*records):
    delta = MetadataDelta(EMPTY)
    for offset, record in enumerate(records):
        delta.replay(record, offset)
    delta.finish_batch(len(records), 1, 0)
    return delta.apply()


def image_of(case):
    records: list[Any] = [RegisterControllerRecord(NODE, b"c" * 16, False, (), ())]
    if case.get("elr"):
        records += [FeatureLevelRecord(METADATA_VERSION, 30), FeatureLevelRecord(ELR_VERSION, 1)]
    for name in case.get("topics", ()):
        topic_id = name.encode() * 16
        records += [
            TopicRecord(name, topic_id),
            PartitionRecord(
                0, topic_id, (1, 2, 3), (1,), (), (), 1, 0, 0, eligible_leader_replicas=(2, 3)
            ),
        ]
    records += [
        RegisterBrokerRecord(int(n), b"b" * 16, 1, (), (), None) for n in case.get("brokers", ())
    ]
    records += [ConfigRecord(KINDS[kind], *rest) for kind, *rest in case.get("before", ())]
    return image_with(*records)


def request_of(case):
    resources: dict[tuple[str, str], list[ConfigChange]] = {}
    for kind, name, key, operation, value in case["ask"]:
        change = ConfigChange(key, value, ConfigOperation(operation))
        resources.setdefault((kind, name), []).append(change)
    return AlterConfigsRequest(
        tuple(ConfigResourceChange(*of, tuple(changes)) for of, changes in resources.items())
    )


def decided(case):
    """Return our codes, and our records in the words of the cases."""
    manager = ConfigManager(OwnConfigs(case.get("static", {}), NODE))
    request = request_of(case)
    try:
        result = run_now(manager.alter(image_of(case), request))
    except LogbergError as error:
        return [error.code.value], []
    codes = [each.error.code if each.error else "NONE" for each in result.reply.resources]
    records: list[Any] = []
    for record in result.records:
        if isinstance(record, ConfigRecord):
            kind = KINDS_BY_CODE[record.resource_type]
            records.append([kind, record.resource_name, record.name, record.value])
        else:
            assert record == PartitionChangeRecord(0, b"t" * 16, eligible_leader_replicas=())
            records.append("clear-elr")
    return codes, records


@pytest.mark.parametrize("case", ASKED, ids=lambda case: f"{case['about']}: {case['what']}")
def test_operations(case):
    """Kafka writes ClearElr behind the configs; we write what it does to the partitions before."""
    wanted = [code for _, _, code, _ in case["answers"]]
    cleared = [r for r in case["records"] if r[0] == "clear-elr"]
    records = ["clear-elr"] * len(cleared) + [r for r in case["records"] if r[0] != "clear-elr"]
    if broker_refuses(case):
        wanted, records = ["INVALID_REQUEST"], []
    assert decided(case) == (wanted, records)


@pytest.mark.parametrize("case", RESOLVED, ids=lambda case: case["what"])
def test_resolution(case):
    effective = Effective(image_of(case), OwnConfigs(case.get("static", {}), NODE))
    shown = {each.name: each for each in effective.all_of(TOPIC, "t")}
    for key, (value, source, sensitive) in case["found"].items():
        assert effective.value(TOPIC, "t", key) == value
        assert (shown[key].value, shown[key].source, shown[key].sensitive) == (
            value,
            source,
            sensitive,
        )


@pytest.mark.parametrize("row", OF_VALUES, ids=lambda row: f"{row['kind']} {row['key']}")
def test_values(row):
    """What Kafka accepts of a key, and its code for the rest."""
    name = {"broker": ""}.get(row["kind"], "t")
    wanted = {**dict.fromkeys(row["accepted"], "NONE"), **row["refused"]}
    found, named = {}, set()
    for value in wanted:
        found[value] = "NONE"
        try:
            check(KINDS[row["kind"]], name, {}, {row["key"]: value}, OwnConfigs())
        except LogbergError as error:
            found[value] = error.code.value
            named.add(error.details["config"])
    assert found == wanted
    assert named <= {row["key"]}


def test_the_tables_hold_what_the_issue_asks_for():
    assert len(ASKED) + len(RESOLVED) >= 35
    keys = {(row["kind"], row["key"]) for row in read(VALUES)}
    assert keys == {(kind, key) for kind, code in KINDS.items() for key in DEFINITIONS[code]}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ([("a", "1", "set"), ("a", None, "delete")], "'a' is in the request twice"),
        ([("a", None, "set")], "'a': set needs a value"),
        ([("cleanup.policy", None, "append")], "'cleanup.policy': append needs a value"),
        ([("cleanup.policy", None, "subtract")], "'cleanup.policy': subtract needs a value"),
    ],
)
def test_what_brokers_check_before_they_forward(changes, why):
    """At most one operation a key, and a value where one is needed (ConfigAdminManager)."""
    found = tuple(ConfigChange(k, v, ConfigOperation(op)) for k, v, op in changes)
    request = AlterConfigsRequest((ConfigResourceChange("topic", "t", found),))
    with pytest.raises(LogbergError, match=re.escape(why)) as refused:
        run_now(ConfigManager(OwnConfigs()).alter(image_of({"topics": ["t"]}), request))
    assert refused.value.code == "INVALID_REQUEST"


@pytest.mark.parametrize("names", [("t", "t"), ("default", "")])
def test_a_resource_is_named_once(names):
    kind = "topic" if names[0] == "t" else "broker"
    change = ConfigChange(MIN_ISR, "2")
    resources = tuple(ConfigResourceChange(kind, name, (change,)) for name in names)
    request = AlterConfigsRequest(resources)
    result = run_now(ConfigManager(OwnConfigs()).alter(image_of({"topics": ["t"]}), request))
    assert [each.error.code for each in result.reply.resources] == ["INVALID_REQUEST"] * 2
    assert result.records == ()


def test_a_request_has_at_most_ten_thousand_operations():
    changes = tuple(ConfigChange(f"k{n}", operation=ConfigOperation.DELETE) for n in range(5_001))
    resources = tuple(ConfigResourceChange("group", name, changes) for name in ("g", "h"))
    with pytest.raises(LogbergError, match="10002 operations in one request") as refused:
        run_now(ConfigManager(OwnConfigs()).alter(EMPTY, AlterConfigsRequest(resources)))
    assert refused.value.code == "POLICY_VIOLATION"


def test_a_brokers_own_min_isr_does_not_count_while_elr_is_on():
    """A log of another program may hold one; nobody can alter it (KIP-966)."""
    case = {"topics": ["t"], "before": [["broker", "9", MIN_ISR, "3"]]}
    own = OwnConfigs({}, NODE)
    assert Effective(image_of(case), own).value(TOPIC, "t", MIN_ISR) == "3"
    assert Effective(image_of({**case, "elr": True}), own).value(TOPIC, "t", MIN_ISR) == "1"


def with_elr(partitions):
    """Topic a with these partitions, and topic b with two; (isr, elr, last known elr) each."""
    records: list[Any] = [FeatureLevelRecord(METADATA_VERSION, 30)]
    records.append(FeatureLevelRecord(ELR_VERSION, 1))
    for name, rows in (("a", partitions), ("b", [((1,), (2,), ()), ((1, 2, 3), (), ())])):
        topic_id = name.encode() * 16
        records.append(TopicRecord(name, topic_id))
        records += [
            PartitionRecord(
                number,
                topic_id,
                (1, 2, 3),
                isr,
                (),
                (),
                isr[0] if isr else -1,
                0,
                0,
                eligible_leader_replicas=elr or None,
                last_known_elr=last or None,
            )
            for number, (isr, elr, last) in enumerate(rows)
        ]
    return image_with(*records)


def cleared_by(image, kind, name, value="1"):
    request = AlterConfigsRequest(
        (ConfigResourceChange(kind, name, (ConfigChange(MIN_ISR, value),)),)
    )
    result = run_now(ConfigManager(OwnConfigs()).alter(image, request))
    changes = [r for r in result.records if isinstance(r, PartitionChangeRecord)]
    return [(r.topic_id[:1].decode(), r.partition_id) for r in changes]


LACKING = [((1,), (2, 3), ()), ((1, 2, 3), (), ()), ((2,), (), (3,)), ((), (2, 3), (3,))]


def test_a_change_of_min_isr_clears_elrs_but_not_the_last_candidates():
    image = with_elr(LACKING)
    assert cleared_by(image, "topic", "a") == [("a", 0), ("a", 2)]
    assert cleared_by(image, "broker", "default") == [("a", 0), ("a", 2), ("b", 0)]
    own = image_with_more(image, ConfigRecord(TOPIC, "a", MIN_ISR, "2"))
    assert cleared_by(own, "broker", "default") == [("b", 0)]
    assert cleared_by(own, "topic", "a", "2") == []


def image_with_more(image, *records):
    delta = MetadataDelta(image)
    for number, record in enumerate(records):
        delta.replay(record, image.offset + number)
    delta.finish_batch(image.offset + len(records), 1, 0)
    return delta.apply()


def test_many_elrs_are_cleared_in_rounds_and_the_config_comes_last():
    image = with_elr([((1,), (2, 3), ())] * (2 * ROUND + 5))
    request = AlterConfigsRequest(
        (ConfigResourceChange("broker", "default", (ConfigChange(MIN_ISR, "1"),)),)
    )
    manager, sweep, rounds = ConfigManager(OwnConfigs()), Sweep(ROUND), []
    while True:
        result = run_now(manager.alter(image, request, sweep))
        rounds.append(result)
        image = image_with_more(image, *result.records)
        if not result.unfinished:
            break
    assert [len(each.records) for each in rounds] == [ROUND, ROUND, 5 + 1 + 1]
    assert not any(isinstance(r, ConfigRecord) for each in rounds[:-1] for r in each.records)
    assert rounds[-1].records[-1] == ConfigRecord(BROKER, "", MIN_ISR, "1")
    assert not any(p.elr for _, p in image.topics.partitions.unordered_items())
