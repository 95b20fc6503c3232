"""Bounds of the audit's measurements: each is printed, and whether one was missed is remembered."""


class Bounds:
    """Prints each bound and remembers whether one was missed."""

    def __init__(self) -> None:
        self.missed = False

    def at_most(self, what: str, value: float, most: float, unit: str) -> None:
        """Check a figure."""
        self._tell(what, value <= most, f"{value:,.1f}{unit}, at most {most:,.1f}{unit}")

    def at_least(self, what: str, value: float, least: float, unit: str) -> None:
        """Check a figure."""
        self._tell(what, value >= least, f"{value:,.1f}{unit}, at least {least:,.1f}{unit}")

    def _tell(self, what: str, met: bool, words: str) -> None:
        self.missed |= not met
        print(f"{'met   ' if met else 'MISSED'} {what}: {words}", flush=True)
