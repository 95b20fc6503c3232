"""A console in a process of its own, on a free port."""

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

from tests.conformance.ports import free_port
from tests.docs.source import ROOT

PATIENCE_S = 90.0


@contextmanager
def serving(
    where: Path | str, index: Path, *options: str, token: str = "", folder: Path = ROOT
) -> Iterator[str]:
    """Run `logberg audit serve` in a folder until the index is built; yield the console's URL."""
    port = free_port()
    arguments = ("audit", "serve", str(where), "--port", str(port), "--index", str(index), *options)
    running = subprocess.Popen(
        [sys.executable, "-m", "logberg", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert running.stdout is not None
        url = running.stdout.readline().split()[1]
        token = token or url.partition("#token=")[2]
        until = time.monotonic() + PATIENCE_S
        while not asked(url, "status", token)[1].get("ready"):
            assert time.monotonic() < until, "the index was not built in time"
            time.sleep(0.1)
        yield url
    finally:
        running.terminate()
        running.communicate(timeout=30)


def asked(url: str, view: str, token: str = "", **headers: str) -> tuple[int, dict[str, Any]]:
    """Ask the console; return the status and the answer."""
    if token:
        headers["authorization"] = f"Bearer {token}"
    request = urllib.request.Request(f"{url.partition('#')[0]}api/{view}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as reply:
            return reply.status, json.loads(reply.read())
    except HTTPError as error:
        with error:
            return error.code, json.loads(error.read())
