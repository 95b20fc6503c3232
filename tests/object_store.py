"""A real S3-compatible server on loopback, for tests that read or write object storage."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest

from tests.conformance.ports import free_port


class ObjectStore(NamedTuple):
    """A running server with the bucket `history`."""

    system: Any
    """A `pyarrow.fs.S3FileSystem` that may do everything."""
    endpoint: str
    """HOST:PORT."""
    server: Any
    """moto's, in a thread of this process."""

    @property
    def options(self) -> str:
        """What comes after the path in a URL."""
        keys = "access_key=any&secret_key=any&region=us-east-1"
        return f"?endpoint_override={self.endpoint}&scheme=http&{keys}"

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs to use the server by a URL without options."""
        return {
            "AWS_ENDPOINT_URL": f"http://{self.endpoint}",
            "AWS_ACCESS_KEY_ID": "any",
            "AWS_SECRET_ACCESS_KEY": "any",
            "AWS_DEFAULT_REGION": "us-east-1",
        }

    def names(self, under: str) -> list[str]:
        """Return the paths of the objects below a path, sorted."""
        fs = pytest.importorskip("pyarrow.fs")
        found = self.system.get_file_info(
            fs.FileSelector(under, recursive=True, allow_not_found=True)
        )
        return sorted(info.path for info in found if info.type == fs.FileType.File)

    @contextmanager
    def no_rights(self) -> Iterator[None]:
        """From now on the server asks for rights, and nobody has any."""
        settings = pytest.importorskip("moto.settings")
        before = settings.INITIAL_NO_AUTH_ACTION_COUNT
        settings.INITIAL_NO_AUTH_ACTION_COUNT = 0
        try:
            yield
        finally:
            settings.INITIAL_NO_AUTH_ACTION_COUNT = before

    @contextmanager
    def away(self) -> Iterator[None]:
        """Meanwhile nobody listens at the endpoint. Then the server is back, with all it held."""
        self.server.stop()
        try:
            yield
        finally:
            self.server.start()


@contextmanager
def object_store(bucket: str = "history") -> Iterator[ObjectStore]:
    """Run a server with one bucket."""
    fs = pytest.importorskip("pyarrow.fs")
    server = pytest.importorskip("moto.server").ThreadedMotoServer(
        ip_address="127.0.0.1", port=free_port(), verbose=False
    )
    server.start()
    try:
        host, port = server.get_host_and_port()
        endpoint = f"{host}:{port}"
        system = fs.S3FileSystem(
            endpoint_override=endpoint,
            scheme="http",
            region="us-east-1",
            access_key="any",
            secret_key="any",
            allow_bucket_creation=True,
        )
        system.create_dir(bucket)
        yield ObjectStore(system, endpoint, server)
    finally:
        server.stop()
