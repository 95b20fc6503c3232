"""The families of an image: their tables, and the methods that replay their records.

Rule: a family declares its tables and its replay methods in its own module (`TABLES`, and the
methods of its delta that are marked `replays`). Only this module lists the families. The order of
families and tables is the order of a snapshot. It is chosen so that each record of a snapshot can
be replayed after those before it.
"""

from collections.abc import Callable
from typing import Any, Final

from metadata.image import (
    acls,
    attempts,
    bridge,
    client_quotas,
    cluster,
    configs,
    coordination,
    credentials,
    erasures,
    features,
    heads,
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
    (heads.HeadsDelta, heads.TABLES),
    (cluster.ClusterDelta, cluster.TABLES),
    (topics_delta.TopicsDelta, topics.TABLES),
    (configs.ConfigsDelta, configs.TABLES),
    (client_quotas.ClientQuotasDelta, client_quotas.TABLES),
    (producer_ids.ProducerIdsDelta, producer_ids.TABLES),
    (acls.AclsDelta, acls.TABLES),
    (scram.ScramDelta, scram.TABLES),
    (tokens.TokensDelta, tokens.TABLES),
    (erasures.ErasuresDelta, erasures.TABLES),
    (credentials.CredentialsDelta, credentials.TABLES),
    (coordination.CoordinationDelta, coordination.TABLES),
    (bridge.BridgeDelta, bridge.TABLES),
    (attempts.AttemptsDelta, attempts.TABLES),
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
"""By record class: the family, and the method of its delta that replays the record. `delta.py`
replays the records that concern no family or several (RemoveTopic, BeginEpoch, transactions,
NoOp)."""
