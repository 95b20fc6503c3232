"""How the command line names partitions and lists of brokers: `orders-0`, `1,2,3`."""

from collections.abc import Sequence

import click


def partition_named(text: str) -> tuple[str, int]:
    """Read `orders-0`; the topic's own name may have dashes. Raises click.BadParameter."""
    topic, dash, number = text.rpartition("-")
    if not dash or not topic or not number.isascii() or not number.isdecimal():
        raise click.BadParameter(f"{text!r}: give a topic and a number, such as orders-0")
    return topic, int(number)


def broker_ids(text: str) -> tuple[int, ...]:
    """Read `1,2,3`. Raises click.BadParameter."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdecimal() for part in parts):
        raise click.BadParameter(f"{text!r}: give broker ids, such as 1,2,3")
    return tuple(int(part) for part in parts)


def ids(brokers: Sequence[int]) -> str:
    """Write `1,2,3`."""
    return ",".join(map(str, brokers)) or "-"
