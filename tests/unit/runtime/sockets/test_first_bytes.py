"""What becomes of a connection that the loop was too busy to look at in time."""

import asyncio
import socket

import pytest

from runtime.sockets.first_bytes import FirstBytes


@pytest.mark.parametrize(
    ("tls", "sent", "heard"),
    [
        (False, b"POST", ["ready"]),
        (False, b"", ["gone: "]),
        (True, b"\x16\x03\x01\x00\x01\x01", ["ready"]),
        (True, b"\x16\x03\x01\x00\x09\x01", ["gone: it sent no whole ClientHello in time"]),
        (True, b"\x16", ["gone: it sent no whole ClientHello in time"]),
    ],
)
def test_bytes_that_came_in_time_count_although_nobody_looked_yet(
    tls: bool, sent: bytes, heard: list[str]
) -> None:
    async def run() -> list[str]:
        said = list[str]()
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        with ours, theirs:
            theirs.send(sent)
            watch = FirstBytes(
                ours,
                tls=tls,
                deadline_s=0.01,
                on_ready=lambda: said.append("ready"),
                on_gone=lambda why: said.append(f"gone: {why}"),
            )
            # As on a loop that has other sockets to serve first.
            asyncio.get_running_loop().remove_reader(ours)
            await asyncio.sleep(0.05)
            watch.close()
        return said

    assert asyncio.run(run()) == heard
