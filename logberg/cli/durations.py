"""Durations as people write them: 90d, 12h, 10m, 30s."""

import re
from typing import Any, Final

import click

_FORM: Final = re.compile(r"(\d{1,6})([smhd])")
_MS: Final = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


class Duration(click.ParamType[int]):
    """A duration; its value is in milliseconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the duration in ms."""
        if isinstance(value, int):
            return value
        found = _FORM.fullmatch(str(value))
        if found is None:
            self.fail(
                f"{value!r} is no duration; give a number and s, m, h or d, such as 10m", param, ctx
            )
        return int(found[1]) * _MS[found[2]]
