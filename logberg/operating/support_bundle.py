"""What `logberg support-bundle` puts into its file.

Rule: the bundle says what happened, not what it was about. Of the log's batches it has type, time,
operation and caller, and no field of a record: a value of a config or a key may be a secret that
nobody marked as one. Configuration files and process logs go through `redaction`. Nothing of a data
folder is copied but names and sizes.
"""

import io
import json
import os
import platform
import tarfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from logberg.client.client import LogbergClient
from logberg.client.client_errors import ClientError
from logberg.operating.checks import check_all
from logberg.operating.node_report import DEADLINE_S, ClusterReport, gather
from logberg.operating.redaction import redacted_line, redacted_settings, scrub
from logberg.version import VERSION
from metadata.messages.log import LogReply
from metadata.messages.quorum import QuorumReply
from runtime.disk.secret_file import SecretFileError

LOG_BYTES = 4 * 1024 * 1024
"""So much of the end of each process log."""


class LocalFiles(NamedTuple):
    """Files of this machine that the caller named."""

    configs: Sequence[Path] = ()
    logs: Sequence[Path] = ()
    folders: Sequence[Path] = ()


async def gather_files(
    client: LogbergClient, urls: Sequence[str], local: LocalFiles, batches: int
) -> dict[str, bytes]:
    """Return the files of the bundle by name. A node that does not answer is a file that says so.

    `batches`: how many of the log's newest.
    """
    report = await gather(client, urls)
    files = {
        "about.json": _json(
            {
                "logberg": VERSION,
                "python": platform.python_version(),
                "system": platform.platform(),
                "madeAt": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            }
        ),
        "doctor.json": _json(msgspec.to_builtins(check_all(report, time.time()))),
        "brokers.json": _json(msgspec.to_builtins(report.brokers)),
    }
    for number, node in enumerate(report.controllers, 1):
        place = f"controllers/{number}"
        if node.status is None:
            files[f"{place}/problem.txt"] = f"{node.url}: {node.problem}\n".encode()
            continue
        files[f"{place}/status.json"] = _json(msgspec.to_builtins(node.status))
        try:
            quorum = await client.from_one(node.url, "/v1/quorum", QuorumReply)
            files[f"{place}/quorum.json"] = _json(msgspec.to_builtins(quorum))
            text = await client.from_one(node.url, "/metrics", bytes)
            files[f"{place}/metrics.txt"] = text
        except ClientError as error:
            files[f"{place}/problem.txt"] = f"{node.url}: {error}\n".encode()
    files["log/newest-batches.jsonl"] = await _newest_batches(client, report, batches)
    files |= dict(_local_files(local))
    return {name: _scrubbed(data) for name, data in files.items()}


async def _newest_batches(client: LogbergClient, report: ClusterReport, wanted: int) -> bytes:
    """Who did what when, without the fields of records."""
    source = next((node.url for node in report.controllers if node.status is not None), None)
    if source is None or wanted < 1:
        return b""
    offset = max(0, report.common_offset - wanted)
    lines: list[dict[str, Any]] = []
    while offset < report.common_offset:
        query = {"offset": str(offset), "format": "json"}
        try:
            reply = await client.from_one(source, "/v1/log", LogReply, query, DEADLINE_S)
        except ClientError as error:
            lines.append({"problem": str(error)})
            break
        if not reply.batches or reply.next_offset <= offset:
            break
        lines += [
            {
                "offset": batch.offset,
                "end": batch.end_offset,
                "epoch": batch.epoch,
                "timestampMs": batch.timestamp_ms,
                "hash": batch.hash[:16],
                "principal": batch.principal,
                "operation": batch.operation,
                "records": [record.type for record in batch.records],
            }
            for batch in reply.batches
        ]
        offset = reply.next_offset
    return "".join(f"{json.dumps(line)}\n" for line in lines[-wanted:]).encode()


def _local_files(local: LocalFiles) -> Iterator[tuple[str, bytes]]:
    for number, path in enumerate(local.configs, 1):
        try:
            shown = redacted_settings(path.read_text(errors="replace"))
        except OSError as error:
            shown = f"{path}: {error.strerror}\n"
        yield f"local/config-{number}-{path.name}.json", shown.encode()
    for number, path in enumerate(local.logs, 1):
        yield f"local/log-{number}-{path.name}", "".join(_log_lines(path)).encode()
    for number, path in enumerate(local.folders, 1):
        listed = "".join(f"{line}\n" for line in _listing(path))
        yield f"local/folder-{number}-{path.name}.txt", listed.encode()


def _log_lines(path: Path) -> Iterator[str]:
    try:
        with path.open("rb") as file:
            size = file.seek(0, io.SEEK_END)
            file.seek(max(0, size - LOG_BYTES))
            data = file.read(LOG_BYTES)
    except OSError as error:
        yield f"{path}: {error.strerror}\n"
        return
    lines = data.decode(errors="replace").splitlines()
    # The first one was cut off.
    for line in lines[1:] if size > LOG_BYTES else lines:
        shown = redacted_line(line)
        if shown is not None:
            yield f"{shown}\n"


def _listing(folder: Path) -> Iterator[str]:
    """Names and sizes; contents stay where they are."""
    for path in sorted(folder.rglob("*")):
        try:
            if path.is_file() and not path.is_symlink():
                figures = path.stat()
                yield f"{figures.st_size:>12} {int(figures.st_mtime)} {path.relative_to(folder)}"
        except OSError as error:
            yield f"{'?':>12} {error.strerror} {path.relative_to(folder)}"


def _scrubbed(data: bytes) -> bytes:
    """The last look at each file, whatever it was made of. Lines stay lines."""
    lines = data.decode(errors="replace").split("\n")
    return "\n".join(_keeping_hashes(line) for line in lines).encode()


def _keeping_hashes(line: str) -> str:
    # Chain and state hashes are no secrets, and they are what a comparison of nodes needs.
    if line.lstrip().startswith(('"chainHash"', '"stateHash"', '"controllersHash"')):
        return line
    return scrub(line)


def write_bundle(path: Path, files: dict[str, bytes]) -> None:
    """Write a .tar.gz that only its user can read. Raises SecretFileError."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with (
            os.fdopen(descriptor, "wb") as file,
            tarfile.open(fileobj=file, mode="w:gz") as tar,
        ):
            for name, data in sorted(files.items()):
                entry = tarfile.TarInfo(f"logberg-support/{name}")
                entry.size, entry.mode, entry.mtime = len(data), 0o600, int(time.time())
                tar.addfile(entry, io.BytesIO(data))
    except FileExistsError:
        raise SecretFileError(f"{path} is there already; choose another name") from None
    except OSError as error:
        # Half a file would look like a bundle, and stand in the way of the next try.
        with suppress(OSError):
            path.unlink()
        raise SecretFileError(f"{path} can't be written ({error.strerror})") from None


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=2) + "\n").encode()
