"""Output paths of the audit's commands: local paths, and `s3://` where a command can write to it.

Rule: any other URL is refused. As a path, `gs://bucket/out` would be a local folder of that name.
"""

import re
from pathlib import Path
from typing import Any

import click

from audit.places.remote_writing import S3

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


class LocalPath(click.Path):
    """A path on this machine. Anything that looks like a URL is a usage error."""

    def __init__(self, *, file_okay: bool = True) -> None:
        """`file_okay` False: a folder is meant."""
        super().__init__(path_type=Path, file_okay=file_okay)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if _URL.match(str(value)):
            self.fail(
                f"{value} is a URL, but this command writes only to this machine. Name a local "
                "path, and copy the output with your object store's own tool. On a cluster, "
                "`audit/spark/submit.py` writes to URLs.",
                param,
                ctx,
            )
        return super().convert(value, param, ctx)


class OutPlace(click.ParamType[str]):
    """A path on this machine, or an `s3://` URL; the value is text. Other URLs are refused."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if str(value).startswith(S3):
            return str(value)
        return str(LocalPath().convert(value, param, ctx))
