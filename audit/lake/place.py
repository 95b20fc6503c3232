"""Where kept tables lie: a folder, or a URL of object storage, and whose cluster they describe.

Rule: a place is a value. It opens nothing until it is asked, and it can be sent to other processes.
Every error of a library becomes a LakeError, one sentence that names the place without its secrets.
"""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from audit.places.remote import in_short, is_url, s3_options, s3_system, without_secrets

FORMAT: Final = 1
"""The version of the kept tables' layout. Tables of another version are refused."""

_LIMITS: Final = {
    "connect_timeout": "5s",
    "timeout": "60s",
    "max_retries": "3",
    "retry_timeout": "20s",
    "conditional_put": "etag",
}


class LakeError(Exception):
    """Kept tables can't be written or read. The message names them, says why, and what to do."""


class LakePlace(NamedTuple):
    """A folder or a URL (`s3://BUCKET/PATH`, with the options of a log's URL) of kept tables."""

    where: str
    cluster_id: str = ""
    """The cluster that the tables describe; empty: any, for those who only read."""

    def __repr__(self) -> str:
        return f"LakePlace({self.shown!r}, {self.cluster_id!r})"

    @property
    def shown(self) -> str:
        """The place without secrets, for messages."""
        return without_secrets(self.where) if is_url(self.where) else self.where

    def shown_table(self, table_path: str) -> str:
        """Return the name of a table of this place, for messages."""
        return f"{self.shown}/{table_path}"

    def table_url(self, table_path: str) -> str:
        """Return what delta-rs opens. Raises LakeError for a scheme that it can't write."""
        if not is_url(self.where):
            return str(Path(self.where).absolute() / table_path)
        parts = urlsplit(self.where)
        if parts.scheme.lower() != "s3":
            raise LakeError(
                f"{self.shown}: tables are kept in a folder or in object storage that speaks S3; "
                "write s3://BUCKET/PATH"
            )
        bucket = parts.netloc.rpartition("@")[2]
        path = "/".join(word for word in (parts.path.strip("/"), table_path) if word)
        return f"s3://{bucket}/{path}"

    def storage_options(self) -> dict[str, str]:
        """Return what delta-rs needs beside the URL; empty for a folder."""
        if not is_url(self.where):
            return {}
        named = s3_options(self.where)
        options = dict(_LIMITS)
        endpoint = named.get("endpoint_override")
        if endpoint:
            scheme = named.get("scheme", "https")
            options["aws_endpoint_url"] = f"{scheme}://{endpoint}"
            options["aws_allow_http"] = "true" if scheme == "http" else "false"
            options["aws_region"] = "us-east-1"
        for ours, theirs in _NAMES.items():
            if ours in named:
                options[theirs] = named[ours]
        if named.get("anonymous"):
            options["aws_skip_signature"] = "true"
        return options

    def files(self) -> tuple[Any, str]:
        """Return pyarrow's file system and the path of the place in it. Raises LakeError."""
        from pyarrow import fs  # noqa: PLC0415 - slow to import

        with self.failing("", "opened"):
            if is_url(self.where):
                self.table_url("")
                system, path = s3_system(self.where)
                return system, path
            return fs.LocalFileSystem(), str(Path(self.where).absolute())

    @contextmanager
    def failing(self, table_path: str, done: str) -> Iterator[None]:
        """Turn a library's error into a LakeError that says what could not be done."""
        try:
            yield
        except LakeError:
            raise
        except Exception as error:
            if not isinstance(error, (OSError, ValueError)) and not _is_of_delta(error):
                raise
            shown = self.shown_table(table_path) if table_path else self.shown
            raise LakeError(f"{shown} can't be {done}: {_said(error)}") from error


def _is_of_delta(error: Exception) -> bool:
    """Return whether delta-rs raised an error. Processes that only write files don't have it."""
    delta = sys.modules.get("deltalake.exceptions")
    return delta is not None and isinstance(error, delta.DeltaError)


def _said(error: Exception) -> str:
    """Return a library's error as one line: a store's own sentence if there is one."""
    text = _COLOUR.sub("", str(error)).replace("\u21b3", "")
    found = _STORE_SAYS.search(text)
    return in_short(ValueError(found.group(1) if found else text))


_COLOUR: Final = re.compile("\x1b\\[[0-9;]*m")
_STORE_SAYS: Final = re.compile("<Message>([^<]+)</Message>")
_NAMES: Final = {
    "region": "aws_region",
    "access_key": "aws_access_key_id",
    "secret_key": "aws_secret_access_key",
}
