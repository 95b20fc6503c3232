"""Which function answers which route about partitions and their replicas."""

from collections.abc import Mapping
from typing import Final

from controller.http.clients.asked import MakeChange, Read, ReadInSteps
from controller.http.replicas import changes, explain, lists, questions

CHANGES: Final[Mapping[str, MakeChange]] = {
    "alter_reassignments": changes.alter_reassignments,
    "create_partitions": changes.create_partitions,
}
READS: Final[Mapping[str, Read]] = {
    "describe_partition": explain.one_partition,
    "explain_broker": explain.explain_broker,
}
READS_IN_STEPS: Final[Mapping[str, ReadInSteps]] = {
    "list_partitions": lists.list_partitions,
    "list_reassignments": lists.list_reassignments,
    "lose_brokers": questions.lose_brokers,
    "plan_reassignments": questions.plan_moves,
}
