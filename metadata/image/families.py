"""The families of an image: which maps hold state, which records they are, who replays what.

Rule: a family says in its own module what it is made of (`TABLES`, and the methods of its delta
that are marked `replays`); this is the one place that lists the families. Their order, and that of
their tables, is the order of a snapshot, such that each record can be replayed after those before
it.
"""

from collections.abc import Callable
from typing import Any, Final

from metadata.image import (
    acls,
    client_quotas,
    cluster,
    configs,
    features,
    outcomes,
    producer_ids,
    quorum,
    scram,
    tokens,
    topics,
    topics_delta,
)
from metadata.image.table import ImageTable, replayed_by
from metadata.records import Record

_DELTAS: Final[tuple[tuple[type[Any], tuple[ImageTable, ...]], ...]] = (
    (features.FeaturesDelta, features.TABLES),
    (quorum.QuorumDelta, quorum.TABLES),
    (cluster.ClusterDelta, cluster.TABLES),
    (topics_delta.TopicsDelta, topics.TABLES),
    (configs.ConfigsDelta, configs.TABLES),
    (client_quotas.ClientQuotasDelta, client_quotas.TABLES),
    (producer_ids.ProducerIdsDelta, producer_ids.TABLES),
    (acls.AclsDelta, acls.TABLES),
    (scram.ScramDelta, scram.TABLES),
    (tokens.TokensDelta, tokens.TABLES),
    (outcomes.OutcomesDelta, outcomes.TABLES),
)

TABLES: Final = tuple(table for _, tables in _DELTAS for table in tables)
TABLES_OF: Final = {tables[0].family: tables for _, tables in _DELTAS}
DELTAS: Final[dict[str, Callable[..., Any]]] = {
    tables[0].family: delta for delta, tables in _DELTAS
}
REPLAY: Final[dict[type[Record], tuple[str, str]]] = {
    kind: (tables[0].family, method)
    for delta, tables in _DELTAS
    for kind, method in replayed_by(delta).items()
}
"""For each record that concerns one family: the family, and the method of its delta. The others
(RemoveTopic, BeginEpoch, transactions, NoOp) are in `delta.py`."""
