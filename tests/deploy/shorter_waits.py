"""The alert rules as we ship them, but for how long a condition must last.

Rule: only `for` differs. Expressions, limits and windows are those of the shipped file, so that an
alert of the test fires by the same cause as the one of an operator, only sooner.
"""

from pathlib import Path
from typing import Any

import yaml

LASTS = "2s"


def with_shorter_waits(rules: dict[str, Any]) -> dict[str, Any]:
    """Return the same rules. Each one that waits at all waits for two seconds."""
    return {
        "groups": [
            {
                **group,
                "rules": [
                    {**rule, "for": LASTS} if "for" in rule else rule for rule in group["rules"]
                ],
            }
            for group in rules["groups"]
        ]
    }


def write_shorter(source: Path, target: Path) -> Path:
    """Write the rules of `source` with shorter waits to `target`, and return it."""
    target.write_text(yaml.safe_dump(with_shorter_waits(yaml.safe_load(source.read_text()))))
    return target
