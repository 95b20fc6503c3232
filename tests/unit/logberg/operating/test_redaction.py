"""Canaries: secrets that a test plants in every place, and looks for in what is shown."""

import json

import pytest

from logberg.local.toml_text import to_toml
from logberg.operating.redaction import HIDDEN, redacted_line, redacted_settings, scrub

CANARY = "canary-4711-hunter2"
HEX = "deadbeef" * 8
SETTINGS = {
    "cluster_id": "AAAAAAAAAAAAAAAAAAAAAA",
    "node_id": 1,
    "data": "/var/lib/logberg/controller",
    "session_ms": 9000,
    "token_max_lifetime_ms": 604_800_000,
    "require_authentication": True,
    "unknown_key": CANARY,
    "super_users": ["User:admin"],
    "tokens": [{"principal": "User:admin", "sha256": HEX}],
    "configs": {"min.insync.replicas": "2", "listener.name.sasl.jaas.config": CANARY},
    "controllers": [{"node_id": 1, "quorum": "c1:9091", "http": f"https://u:{CANARY}@c1:9191"}],
    "tls": {"cert": "c.crt", "key": "c.key", "ca": "ca.crt", "passphrase": CANARY},
}


def test_a_configuration_keeps_its_shape_and_no_secret() -> None:
    shown = redacted_settings(to_toml(SETTINGS))
    assert CANARY not in shown
    assert HEX not in shown
    kept = json.loads(shown)
    assert kept["session_ms"] == 9000
    assert kept["token_max_lifetime_ms"] == 604_800_000
    assert kept["require_authentication"] is True
    assert kept["super_users"] == ["User:admin"]
    assert kept["tokens"] == [{"principal": "User:admin", "sha256": HIDDEN}]
    assert kept["configs"] == dict.fromkeys(SETTINGS["configs"], HIDDEN)  # type: ignore[call-overload]
    assert kept["tls"]["cert"] == "c.crt"
    assert kept["controllers"][0]["quorum"] == "c1:9091"
    # It goes through the last look unchanged, and stays JSON.
    assert json.loads("\n".join(map(scrub, shown.split("\n")))) == kept


@pytest.mark.parametrize(
    "text",
    [
        f"cluster_id = 'AAAA'\npassword = '{CANARY}\nnode_id = 1\n",
        f"process.roles=controller\nssl.keystore.password={CANARY}\n",
        f"{CANARY}\n",
        f"listener.sasl.jaas.config=x required \\\n  password={CANARY};\n",
    ],
)
def test_a_file_that_is_no_toml_shows_its_keys_at_most(text: str) -> None:
    shown = redacted_settings(text)
    assert CANARY not in shown
    assert set(json.loads(shown).values()) <= {HIDDEN}


@pytest.mark.parametrize(
    "said",
    [
        f"the broker sent password={CANARY}",
        f"Authorization: Bearer {CANARY}",
        f"authorization: Basic {CANARY}==",
        f'{{"apiKey": "{CANARY} with blanks"}}',
        f"https://admin:{CANARY}@controller:9191/v1/status",
        f"sasl.jaas.config: org.X required username='u' password='{CANARY}';",
        f"-----BEGIN EC PRIVATE KEY-----\n{CANARY}\n-----END EC PRIVATE KEY-----",
        f"-----BEGIN PRIVATE KEY-----\n{CANARY}",
        f"the token qk_{CANARY} is unknown",
        f"lgb_{CANARY} was shown",
        f"the node read lgbj_{CANARY}.{HEX} and joined",
        f"client_secret: {CANARY}",
    ],
)
def test_a_text_loses_what_looks_like_a_secret(said: str) -> None:
    assert CANARY not in scrub(said)
    line = redacted_line(json.dumps({"event": "library_log", "level": "error", "error": said}))
    assert line is not None
    assert CANARY not in line
    assert json.loads(line)["event"] == "library_log"


@pytest.mark.parametrize(
    "said", [HEX, "c29tZSBzZWNyZXQgdGhhdCBpcyBsb25nIGVub3VnaCB0byBiZSBhIGtleQ0="]
)
def test_keys_are_known_by_their_look(said: str) -> None:
    assert said not in scrub(f"the key is {said} here")


@pytest.mark.parametrize(
    "said",
    [
        "journal/00000000000000000001.wal can't be read: it ends at byte 4096",
        "cluster AAAAAAAAAAAAAAAAAAAAAA, controller 2, epoch 17",
        "no request of the last 9.0 s was answered; the token bucket holds 5",
        '"token_period_ms": 86400000',
        "/var/lib/logberg/controller-1/checkpoints/00000000000000000042-0000000003.checkpoint",
    ],
)
def test_a_text_without_a_secret_stays(said: str) -> None:
    assert scrub(said) == said


def test_fields_of_a_log_line_are_judged_by_their_names_too() -> None:
    line = {
        "event": "token_refused",
        "timestamp": "2026-11-28T10:00:00Z",
        "node_id": 1,
        "password": CANARY,
        "details": {"salted_password": CANARY, "count": 3},
        "seconds": 0.25,
    }
    shown = redacted_line(json.dumps(line))
    assert shown is not None
    assert CANARY not in shown
    assert json.loads(shown) == {
        **line,
        "password": HIDDEN,
        "details": {"salted_password": HIDDEN, "count": 3},
    }


def test_of_a_traceback_only_the_places_and_the_kind_stay() -> None:
    lines = [
        "Traceback (most recent call last):",
        '  File "/usr/lib/logberg/x.py", line 7, in handle',
        f'    raise ValueError("{CANARY}")',
        f"ValueError: {CANARY}",
        CANARY,
    ]
    shown = [line for line in map(redacted_line, lines) if line is not None]
    assert shown == ['  File "/usr/lib/logberg/x.py", line 7, in handle', "ValueError"]
    in_field = redacted_line(json.dumps({"event": "defect", "exception": "\n".join(lines)}))
    assert in_field is not None
    assert CANARY not in in_field
    assert "line 7, in handle" in in_field
