"""`python -m benchmarks.scale` works out what 100,000 brokers and 10,000,000 partitions need.

It multiplies measured costs of one heartbeat, one change, one partition (`costs.csv`) by the
numbers of such a cluster, and prints the tables of docs/scale.md. `make docs` writes them there.
`python -m benchmarks.scale.costs` measures the costs again.
"""

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

COSTS = Path(__file__).with_name("costs.csv")
BROKERS, PARTITIONS, REPLICAS, CONTROLLERS = 100_000, 10_000_000, 3, 5
HEARTBEAT_S = 2.0
REST_US = 150
"""`REST_S` of controller/http/held_requests.py: the pause after a crowd was woken, for each."""
FULL = 0.7
"""The share of a core that one loop may use before its answers come late."""
LINE_BYTES_S = 10e9 / 8
"""A controller's network: 10 Gbit/s."""
ON_A_BROKER = PARTITIONS * REPLICAS / BROKERS
DAY_S = 86_400
MB, GB = 1e6, 1e9


class Cost(NamedTuple):
    """One measured cost."""

    name: str
    value: float
    unit: str
    source: str


def read_costs(path: Path = COSTS) -> dict[str, Cost]:
    """Return the costs by name, as the file has them."""
    with path.open(newline="") as file:
        rows = [Cost(row[0], float(row[1]), row[2], row[3]) for row in csv.reader(file)]
    return {cost.name: cost for cost in rows}


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def write_costs(costs: Iterable[Cost], path: Path = COSTS) -> None:
    """Write the file."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows((c.name, _digits(c.value), c.unit, c.source) for c in costs)


# -- the arithmetic ---------------------------------------------------------------------------


def costs_table() -> str:
    """Return the table of the costs, in Markdown."""
    rows = [(c.name, f"{_digits(c.value)} {c.unit}", c.source) for c in read_costs().values()]
    return _table(("cost", "value", "source"), rows)


class Need(NamedTuple):
    """What the cluster needs in one respect, and what it may be."""

    what: str
    arithmetic: str
    need: str
    goal: str
    times: float
    """The need in goals: above 1 it is missed."""


def needs_table() -> str:
    """Return what the cluster needs of one controller of today, the worst first, in Markdown."""
    rows = sorted(needs(read_costs()), key=lambda need: -need.times)
    head = ("", "what", "arithmetic", "need", "goal", "times the goal")
    return _table(
        head,
        (
            (str(n), row.what, row.arithmetic, row.need, row.goal, f"{row.times:,.1f}")
            for n, row in enumerate(rows, 1)
        ),
    )


def needs(costs: dict[str, Cost]) -> list[Need]:
    """Work all rows out."""
    value = {name: cost.value for name, cost in costs.items()}
    return [*_steady(value), *_size(value), *_events(value)]


def _steady(value: dict[str, float]) -> list[Need]:
    heartbeat, change = value["heartbeat"], value["lone change"]
    record, alone = value["change in bulk, in the log"], value["lone change, in the log"]
    restarts_s = BROKERS / DAY_S
    requests_s = restarts_s * ON_A_BROKER
    log_s = requests_s * (record + alone)
    beats = BROKERS / HEARTBEAT_S * heartbeat / 1e6
    round_s = BROKERS * REST_US / 1e6
    return [
        Need(
            "heartbeats",
            f"{BROKERS:,} / {HEARTBEAT_S:.0f} s * {heartbeat:.0f} µs",
            f"{beats:.1f} cores",
            f"{FULL} of a core",
            beats / FULL,
        ),
        Need(
            "the last broker sees a change",
            f"{BROKERS:,} * {REST_US} µs, of which a reply takes {heartbeat:.0f}",
            f"{round_s:.0f} s",
            "2 s",
            round_s / 2,
        ),
        Need(
            "deltas to all brokers, each of which restarts once a day",
            f"{restarts_s:.2f}/s * {ON_A_BROKER:.0f} * ({record:.0f} bytes when it leaves the ISR "
            f"+ {alone:.0f} when it is back) * {BROKERS:,}",
            f"{2 * requests_s:.0f} records/s; {log_s * BROKERS * 8 / GB:.0f} Gbit/s",
            f"{FULL * 10:.0f} Gbit/s",
            log_s * BROKERS / (FULL * LINE_BYTES_S),
        ),
        Need(
            "decisions on these restarts",
            f"{requests_s:.0f}/s * {change:.0f} µs",
            f"{requests_s * change / 1e6:.2f} cores",
            f"{FULL} of a core",
            requests_s * change / 1e6 / FULL,
        ),
        Need(
            "log of these restarts, never cut",
            f"{log_s / 1e3:.0f} kB/s * {DAY_S:,} s",
            f"{log_s * DAY_S / GB:.0f} GB a day",
            "100 GB a day",
            log_s * DAY_S / (100 * GB),
        ),
    ]


def _size(value: dict[str, float]) -> list[Need]:
    image, snapshot = PARTITIONS * value["memory"], PARTITIONS * value["checkpoint"]
    load_s, write_s = PARTITIONS * value["load"] / 1e6, PARTITIONS * value["write"] / 1e6
    download_s = BROKERS * snapshot / LINE_BYTES_S
    return [
        Need(
            "image in memory, in each controller and each agent",
            f"{PARTITIONS:,} * {value['memory']:.0f} bytes",
            f"{image / GB:.1f} GB; {image * BROKERS / 1e12:,.0f} TB in all agents",
            "1 GB in an agent",
            image / GB,
        ),
        Need(
            "a checkpoint is written",
            f"{PARTITIONS:,} * {value['write']:.1f} µs",
            f"{write_s:.0f} s of a core; {snapshot / MB:,.0f} MB",
            "a tenth of ten minutes",
            write_s / 60,
        ),
        Need(
            "a controller restarts",
            f"{PARTITIONS:,} * {value['load']:.1f} µs",
            f"{load_s:.0f} s",
            "5 s",
            load_s / 5,
        ),
        Need(
            "all brokers load the checkpoint",
            f"{BROKERS:,} * {snapshot / MB:,.0f} MB / 10 Gbit/s",
            f"{BROKERS * snapshot / 1e12:,.0f} TB; {download_s / 3600:.1f} h",
            "10 min",
            download_s / 600,
        ),
    ]


def _events(value: dict[str, float]) -> list[Need]:
    storm_s = BROKERS * value["registration"] / 1e6
    storm_bytes = BROKERS * BROKERS / 2 * value["registration, in the log"]
    deciding_s = PARTITIONS * value["change in bulk"] / 1e6
    left = BROKERS * 2 // 3
    sent_s = PARTITIONS * value["change in bulk, in the log"] * left / LINE_BYTES_S
    replay_s = PARTITIONS * value["replay of a change"] / 1e6
    return [
        Need(
            "all brokers register: decisions",
            f"{BROKERS:,} * {value['registration']:.0f} µs",
            f"{storm_s:.0f} s of a core",
            "60 s",
            storm_s / 60,
        ),
        Need(
            "all brokers register: each one is sent to those before it",
            f"{BROKERS:,}² / 2 * {value['registration, in the log']:.0f} bytes / 10 Gbit/s",
            f"{storm_bytes / 1e12:.1f} TB; {storm_bytes / LINE_BYTES_S / 60:.0f} min",
            "60 s",
            storm_bytes / LINE_BYTES_S / 60,
        ),
        Need(
            "a region with a third of all brokers is lost: decisions",
            f"{PARTITIONS:,} * {value['change in bulk']:.0f} µs",
            f"{deciding_s / 60:.0f} min of a core",
            "60 s",
            deciding_s / 60,
        ),
        Need(
            "and each broker left learns of each partition",
            f"{PARTITIONS:,} * {value['change in bulk, in the log']:.0f} bytes * {left:,} / "
            "10 Gbit/s",
            f"{sent_s / 3600:.1f} h",
            "60 s",
            sent_s / 60,
        ),
        Need(
            "and replays it",
            f"{PARTITIONS:,} * {value['replay of a change']:.1f} µs",
            f"{replay_s:.0f} s of a core of each broker",
            "60 s",
            replay_s / 60,
        ),
    ]


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    columns = list(head)
    lines = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"
