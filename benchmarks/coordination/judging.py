"""What is measured, what is shown, and which bounds our own controllers must keep."""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

Measured = Mapping[str, Mapping[str, Mapping[str, float]]]
"""By piece, store and figure."""
KILLED: Final = "killed"
RESIGNED: Final = "resigned"
CROWD: Final = "crowd"
PIECES: Final = (KILLED, RESIGNED, CROWD)


class ShownFigure(NamedTuple):
    """One row of the table."""

    piece: str
    figure: str
    what: str
    most: float | None = None
    """The bound of our own; None: there is none."""


FIGURES: Final = (
    ShownFigure(KILLED, "ttl", "SIGKILL of a leader: the ttl that the store granted, ms"),
    ShownFigure(KILLED, "p50", "until the next one leads: median, ms"),
    ShownFigure(KILLED, "p99", "p99, ms"),
    ShownFigure(KILLED, "worst", "worst, ms"),
    ShownFigure(KILLED, "beyond", "worst, beyond the ttl, ms", 300.0),
    ShownFigure(RESIGNED, "p50", "a leader resigns, until the next one leads: median, ms"),
    ShownFigure(RESIGNED, "p99", "p99, ms", 50.0),
    ShownFigure(RESIGNED, "worst", "worst, ms"),
    ShownFigure(CROWD, "p50", "a change, from its acknowledgement to delivery: median, ms"),
    ShownFigure(CROWD, "p99", "p99, ms", 100.0),
    ShownFigure(CROWD, "worst", "worst, ms"),
    ShownFigure(CROWD, "missing", "deliveries that did not come as an event of their own", 0.0),
    ShownFigure(CROWD, "lost", "sessions lost", 0.0),
    ShownFigure(CROWD, "rate", "changes a second"),
    ShownFigure(CROWD, "store_cores", "cores, three nodes"),
    ShownFigure(CROWD, "client_cores", "cores, the crowd's two processes"),
    ShownFigure(CROWD, "opening", "s to open all sessions and watches"),
)


def missed(measured: Measured) -> Iterator[ShownFigure]:
    """Yield the bounds that our own figures miss."""
    for figure in FIGURES:
        ours = measured.get(figure.piece, {}).get("logberg", {})
        if figure.most is not None and ours.get(figure.figure, 0.0) > figure.most:
            yield figure
