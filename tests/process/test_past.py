"""The past of running controllers: read by their URLs, also while nobody leads; Ctrl-C ends it."""

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.process.running_cluster import Said, running

pytestmark = [pytest.mark.process, pytest.mark.slow]


def names(said: Said) -> list[str]:
    assert said.code == 0, said
    return [topic["name"] for topic in json.loads(said.out)["topics"]]


def test_the_past_is_read_from_running_controllers(tmp_path: Path) -> None:
    with running(tmp_path, controllers=3, brokers=1) as cluster:
        urls = ",".join(map(cluster.url, cluster.local.controllers))
        remote = ("-o", "json", "--controllers", urls, "--data", ".")
        offsets = []
        for name in ("a", "b", "c"):
            cluster.create(name)
            listed = cluster.command("topics", "list", *remote)
            offsets.append(json.loads(listed.out)["offset"])
        for number, offset in enumerate(offsets, 1):
            listed = cluster.command("topics", "list", "--at", str(offset), *remote)
            assert names(listed) == ["a", "b", "c"][:number]
            # What has just been answered is there, whichever controller sends the log.
            assert json.loads(listed.out)["offset"] == offset
        why = cluster.command("explain", "partition", "b-0", "--at", str(offsets[1]), *remote)
        assert json.loads(why.out)["changes"][0]["operation"] == "CreateTopics", why

        stopped = [cluster.leader(), cluster.standby()]
        for n in stopped:
            cluster.controller(n).signal(signal.SIGKILL)
        for n in stopped:
            cluster.until(lambda n=n: not cluster.controller(n).running, f"{n} is gone")
        present = cluster.command("topics", "list", "--timeout", "3", *remote)
        assert present.code == 1, present
        past = cluster.command("topics", "list", "--at", str(offsets[1]), *remote)
        assert names(past) == ["a", "b"]
        for n in stopped:
            cluster.controller(n).start()
        cluster.check_nothing_lost()


def test_ctrl_c_ends_a_long_read() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        asked = subprocess.Popen(
            [sys.executable, "-m", "logberg", "topics", "list", "--at", "5", "--controllers", url],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        silent.settimeout(30)
        connection, _ = silent.accept()
        with connection:
            assert connection.recv(4) == b"GET "
            asked.send_signal(signal.SIGINT)
            out, err = asked.communicate(timeout=30)
    assert (asked.returncode, out) == (130, "")
    assert "Traceback" not in err
