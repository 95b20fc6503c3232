"""Heartbeats go before other requests, in the event loop itself and in the whole process.

`python -m benchmarks --only overload` measures the effect.
"""

import asyncio
from pathlib import Path

import pytest

from controller.http.routes import HEARTBEATS, ROUTES
from logberg.local.local_cluster import LocalCluster
from logberg.local.ports import free_port_base
from logberg.processes.controller_process import ControllerProcess
from logberg.processes.settings.controller_settings import ControllerSettings
from logberg.processes.settings.settings_files import load
from runtime.loop import fair_loop
from tests.unit.runtime.http.http_kit import Asked, make_server, raw


def asking(path: str, token: str) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {token}\r\n"
    return f"{head}connection: close\r\ncontent-length: 0\r\n\r\n".encode()


@pytest.mark.parametrize(
    ("path", "token", "expected"),
    [("/beat", "alice", 1), ("/beat", "wrong", 0), ("/ask", "alice", 0)],
    ids=["a heartbeat", "one who is not let in", "a question"],
)
def test_a_connection_is_hastened_by_a_heartbeat_of_one_who_is_let_in(
    path: str, token: str, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    hastened: list[int] = []
    hasten = fair_loop.FewAtATime.hasten

    def note(self: fair_loop.FewAtATime, fd: int) -> None:
        hastened.append(fd)
        hasten(self, fd)

    monkeypatch.setattr(fair_loop.FewAtATime, "hasten", note)

    async def main() -> bytes:
        server = make_server(Asked(), hastened=("/beat",))
        server.start()
        try:
            return await raw(server.port, asking(path, token))
        finally:
            await server.stop()

    answer = fair_loop.run(main())
    assert answer.startswith(b"HTTP/1.1 401" if token == "wrong" else b"HTTP/1.1 200")
    assert len(hastened) == expected


def test_a_controllers_process_hastens_heartbeats(tmp_path: Path) -> None:
    cluster = LocalCluster(tmp_path / "cluster", 1, 0, free_port_base())
    cluster.prepare()
    (config,) = cluster.folder.rglob("controller-1.toml")

    async def main() -> frozenset[str]:
        process = ControllerProcess(load(config, ControllerSettings), config)
        return process._http._service.hastened

    assert asyncio.run(main()) == {HEARTBEATS}
    assert [route.name for route in ROUTES if route.path == HEARTBEATS] == ["metadata_fetch"]
