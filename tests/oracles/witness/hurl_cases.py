"""Reads the requests and the expected answers from litewitness's own test script.

The script is txtar with a file for hurl. Of hurl's language it uses a request with a body between
fences, a status, and one assertion about the body.
"""

import re
from pathlib import Path
from typing import NamedTuple

_CASE = re.compile(
    r"POST \S+/add-checkpoint\n```\n(?P<body>.*?)```\nHTTP (?P<status>\d+)\n"
    r"\[Asserts\]\nbody (?P<how>contains|==) \"(?P<what>.*?)\"\n",
    re.DOTALL,
)
_KEY = re.compile(r"add-sigsum-log -key=([0-9a-f]{64})")


class Case(NamedTuple):
    """One request of the script, and the answer that litewitness's makers expect."""

    body: bytes
    status: int
    is_whole: bool
    """The answer's body is `text`; else it contains it."""
    text: str


def read_cases(sources: Path) -> tuple[bytes, list[Case]]:
    """Return the log's public key, and the cases in their order."""
    script = (sources / "cmd" / "litewitness" / "testdata" / "litewitness.txt").read_text()
    found = _KEY.search(script)
    assert found is not None
    cases = [
        Case(
            one["body"].encode(),
            int(one["status"]),
            one["how"] == "==",
            one["what"].replace("\\n", "\n"),
        )
        for one in _CASE.finditer(script)
    ]
    assert len(cases) == script.count("POST http")
    return bytes.fromhex(found[1]), cases
