"""The pipeline's folds agree with the SQL however a log is cut; each mutant of them dies by it."""

import inspect
import os
import random
import sys
from types import FunctionType, ModuleType
from typing import NamedTuple

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("deltalake")

from audit.generated import batches as generated
from audit.spark.folds import carried, cluster, partitions, slices, transactions
from ledger.batch import Batch
from tests.audit_sql.calculation import Row, check, compare_rows, sql_answers
from tests.audit_sql.folding import FoldedLog, fold_log
from tests.audit_sql.keeping import bronze_table
from tests.unit.audit.memory_log import history, seal_all

SEEDS = range(int(os.environ.get("LOGBERG_SQL_SEEDS", "5")))


def folded(batches: list[Batch], seed: int) -> FoldedLog:
    dice = random.Random(seed)
    return fold_log(batches, [dice.randrange(len(batches)) for _ in range(dice.randrange(8))])


def compare(batches: list[Batch], seed: int) -> None:
    check(bronze_table(batches), folded(batches, seed).rows)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_folds_agree_with_the_sql(seed: int) -> None:
    compare(seal_all(history(seed, 40 + 29 * seed % 160)), seed)


def test_the_folds_agree_on_a_lifelike_history() -> None:
    compare(list(generated(3, records=1_500, open_transaction=True)), 3)


class FoldMutant(NamedTuple):
    """A line of a fold that is changed: `function` is a method's or a function's name."""

    module: ModuleType
    function: str
    old: str
    new: str


FOLD, STATE = partitions, carried
MUTANTS = {
    "the ISR stays": FoldMutant(FOLD, "PartitionFold._change", "one.isr = isr", "pass"),
    "the replicas stay": FoldMutant(
        FOLD, "PartitionFold._change", "one.replicas = replicas", "pass"
    ),
    "a lost leader is overlooked": FoldMutant(
        FOLD, "PartitionFold._change", "one.leader = leader", "one.leader = max(leader, one.leader)"
    ),
    "each record is a moment": FoldMutant(
        FOLD, "PartitionFold._apply", "bases[place] != self._base", "True"
    ),
    "an equal state begins anew": FoldMutant(
        FOLD, "PartitionFold._end_moment", "if before == one.state:", "if False:"
    ),
    "a removed topic keeps its min ISR": FoldMutant(
        FOLD, "PartitionFold._remove_topic", "self._carried.min_isr.pop(name, None)", "pass"
    ),
    "a removed partition lasts": FoldMutant(
        FOLD,
        "PartitionFold._remove_topic",
        "self._end(topic, number, one, before)",
        "pass",
    ),
    "the default counts for nobody": FoldMutant(
        FOLD, "PartitionFold._configure", "touched = list(self._topics.values())", "touched = []"
    ),
    "a topic's config counts later": FoldMutant(
        FOLD, "PartitionFold._configure", "[self._by_name[name]] if name in", "[] if name in"
    ),
    "a deleted config stays": FoldMutant(
        FOLD, "PartitionFold._configure", "self._carried.min_isr.pop(name, None)", "pass"
    ),
    "a change of leader isn't counted": FoldMutant(
        FOLD, "PartitionFold._end_moment", "one.sums.change_leader(self._ms)", "pass"
    ),
    "what waits is forgotten": FoldMutant(
        FOLD,
        "PartitionFold.take",
        'to_ipc(waiting) if waiting.num_rows else b""',
        'b""',
    ),
    "days of removed topics are forgotten": FoldMutant(
        FOLD, "PartitionFold._remove_topic", "self._carried.removed.append(", "str("
    ),
    "under min ISR from equality on": FoldMutant(
        STATE, "interval_row", "len(isr) < min_isr", "len(isr) <= min_isr"
    ),
    "a day has an hour more": FoldMutant(
        carried, "DaySums.add", "since = self.counted_ms", "since = self.counted_ms - 3_600_000"
    ),
    "the newest day ends early": FoldMutant(
        carried, "DaySums.shown", "shown[place] += horizon_ms", "shown[place] += -1 + horizon_ms"
    ),
    "what was aborted counts": FoldMutant(
        transactions, "settled_rows", "counts[within] = False", "pass"
    ),
    "a transaction settles in its own batches": FoldMutant(
        transactions, "settled_rows", "if span.outcome == SETTLED:", "if False:"
    ),
    "an epoch lets a transaction go on": FoldMutant(
        transactions,
        "spans",
        "elif marker.type != BEGIN:",
        "elif marker.type not in (BEGIN, EPOCH):",
    ),
    "a broker comes back too early": FoldMutant(
        cluster, "BrokerFold._apply", "record.fenced == FencingChange.FENCE", "False"
    ),
    "a broker never stops": FoldMutant(cluster, "BrokerFold._apply", "one.stopping = True", "pass"),
    "registrations count as they stand": FoldMutant(
        cluster, "BrokerFold._apply", "self._carried.literal or ", "True or "
    ),
    "an unregistered broker lasts": FoldMutant(
        cluster,
        "BrokerFold._apply",
        "(record.broker_id).incarnation = None",
        "(record.broker_id)",
    ),
    "a privileged change is lost": FoldMutant(
        cluster, "ClusterFold._step", "if kind is not None:", 'if kind not in (None, "acl"):'
    ),
    "who acted as a broker is lost": FoldMutant(
        cluster, "ClusterFold._privileged_row", "header.acted_as", '""'
    ),
    "partitions go to the wrong part": FoldMutant(
        slices, "messages", "pc.equal(part_of, part)", "pc.equal(part_of, part + 1)"
    ),
}


def planted(mutant: FoldMutant, patch: pytest.MonkeyPatch) -> None:
    """Change the line, wherever the function is used."""
    of, _, name = mutant.function.rpartition(".")
    source = inspect.getsource(mutant.module)
    space = dict(vars(mutant.module))
    whole = inspect.getsource(_function(mutant.module, mutant.function))
    assert mutant.old in whole, f"{mutant.function} has no {mutant.old!r}"
    changed = source.replace(whole, whole.replace(mutant.old, mutant.new))
    assert changed != source
    exec(compile(changed, mutant.module.__file__ or "", "exec"), space)
    if of:
        patch.setattr(getattr(mutant.module, of), name, vars(space[of])[name])
        return
    made = space[name]
    was = getattr(mutant.module, name)
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith(("audit.spark", "tests.audit_sql")):
            for known, value in list(vars(module).items()):
                if value is was:
                    patch.setattr(module, known, made)


def _function(module: ModuleType, dotted: str) -> FunctionType:
    found: object = module
    for word in dotted.split("."):
        found = getattr(found, word)
    assert isinstance(found, FunctionType)
    return found


@pytest.fixture(scope="module")
def histories() -> list[tuple[list[Batch], dict[str, list[Row]]]]:
    """With what the SQL says of each."""
    made = [
        *(seal_all(history(seed, 170)) for seed in (4, 7, 9)),
        list(generated(1, records=1_200, open_transaction=True)),
    ]
    return [(batches, sql_answers(bronze_table(batches))) for batches in made]


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_dies(
    name: str,
    histories: list[tuple[list[Batch], dict[str, list[Row]]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    planted(MUTANTS[name], monkeypatch)
    for seed, (batches, wanted) in enumerate(histories):
        try:
            compare_rows(folded(batches, seed).rows, wanted)
        except (AssertionError, ArithmeticError, LookupError, ValueError):
            return
    pytest.fail("every history agrees with the SQL")
