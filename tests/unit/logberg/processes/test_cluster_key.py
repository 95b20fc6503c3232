"""The file of the cluster key: what is read, what stops a start, what is never overwritten."""

import hmac
from pathlib import Path

import msgspec
import pytest

from logberg.processes.cluster_key import FILE, load_brokers_key, load_cluster_key
from logberg.processes.settings.broker_settings import BrokerSettings
from logberg.processes.settings.controller_settings import ControllerSettings
from logberg.processes.settings.settings_files import SettingsError
from metadata.sealed_places import token_hmac
from metadata.sealing import KEY_BYTES
from runtime.disk.secret_file import SecretFileError, read_secret, write_new_secret
from tests.unit.logberg.edge import run_whole


def settings(cluster_key: str | None = None) -> ControllerSettings:
    return ControllerSettings(
        cluster_id="c", node_id=1, data="data", controllers=(), cluster_key=cluster_key
    )


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    return tmp_path / "controller.toml"


def test_without_a_file_there_is_no_key(config: Path) -> None:
    assert load_cluster_key(settings(), config) is None


def test_the_file_of_the_data_folder_is_found_and_another_can_be_named(config: Path) -> None:
    write_new_secret(config.parent / "data" / FILE, KEY_BYTES)
    write_new_secret(config.parent / "other.key", KEY_BYTES)
    first = load_cluster_key(settings(), config)
    second = load_cluster_key(settings(cluster_key="other.key"), config)
    assert first is not None
    assert second is not None
    assert first.id != second.id


def test_a_file_that_is_named_must_be_there(config: Path) -> None:
    with pytest.raises(SettingsError, match=r"cluster_key: .*gone.key can't be read"):
        load_cluster_key(settings(cluster_key="gone.key"), config)


def test_without_a_key_no_addresses_can_be_sealed(config: Path) -> None:
    asked = msgspec.structs.replace(settings(), seal_addresses=True)
    with pytest.raises(SettingsError, match="seal_addresses is true, and there is no cluster key"):
        load_cluster_key(asked, config)
    write_new_secret(config.parent / "data" / FILE, KEY_BYTES)
    assert load_cluster_key(asked, config) is not None


def test_an_agent_has_only_the_key_that_its_settings_name(config: Path) -> None:
    write_new_secret(config.parent / "data" / FILE, KEY_BYTES)
    agent = BrokerSettings(
        cluster_id="c", broker_id=1, data="data", controllers=(), http="h:1", host_socket="s"
    )
    assert load_brokers_key(agent, config) is None
    named = msgspec.structs.replace(agent, cluster_key=f"data/{FILE}")
    ours, controllers = load_brokers_key(named, config), load_cluster_key(settings(), config)
    assert ours is not None
    assert controllers is not None
    assert ours.id == controllers.id
    gone = msgspec.structs.replace(agent, cluster_key="gone.key")
    with pytest.raises(SettingsError, match=r"cluster_key: .*gone.key can't be read"):
        load_brokers_key(gone, config)


@pytest.mark.parametrize(
    ("content", "mode", "why"),
    [
        ("ab" * KEY_BYTES, 0o640, "others than its user may open .*; run: chmod 600"),
        ("ab" * KEY_BYTES, 0o604, "others than its user may open"),
        ("ab" * (KEY_BYTES - 1), 0o600, "does not hold 64 hexadecimal digits"),
        ("zz" * KEY_BYTES, 0o600, "does not hold 64 hexadecimal digits"),
        ("", 0o600, "does not hold 64 hexadecimal digits"),
        ("ü" * KEY_BYTES, 0o600, "it is no text"),
    ],
)
def test_a_file_that_can_not_be_used_stops_the_start(
    config: Path, content: str, mode: int, why: str
) -> None:
    path = config.parent / "data" / FILE
    path.write_text(content, encoding="utf-8")
    path.chmod(mode)
    with pytest.raises(SettingsError, match=why):
        load_cluster_key(settings(), config)


def test_the_command_draws_a_key_that_only_its_user_reads_and_overwrites_none(
    tmp_path: Path,
) -> None:
    path = tmp_path / "cluster.key"
    done = run_whole("cluster-key", str(path))
    assert done.code == 0
    assert path.stat().st_mode & 0o777 == 0o600
    key = read_secret(path, KEY_BYTES)
    assert key.hex() not in done.both
    again = run_whole("cluster-key", str(path))
    assert again.code == 1
    assert "is there already" in again.err
    assert read_secret(path, KEY_BYTES) == key
    with pytest.raises(SecretFileError, match="can't be written"):
        write_new_secret(tmp_path / "no folder" / "x", KEY_BYTES)


def test_tokens_are_made_with_the_text_that_kafkas_brokers_have(config: Path) -> None:
    write_new_secret(config.parent / "data" / FILE, KEY_BYTES)
    secret = config.parent / "token-secret"
    secret.touch(mode=0o600)
    secret.write_text("wörds of brokers\n")
    plain = load_cluster_key(settings(), config)
    with_secret = load_cluster_key(
        msgspec.structs.replace(settings(), token_secret="token-secret"), config
    )
    assert plain is not None
    assert with_secret is not None
    # Kafka: HmacSHA512 with the UTF-8 of delegation.token.secret.key, over the token's id.
    expected = hmac.digest("wörds of brokers".encode(), b"an-id", "sha512")
    assert token_hmac(with_secret, "an-id") == expected
    assert token_hmac(plain, "an-id") != expected
    # Everything else is sealed with the same key.
    assert with_secret.id == plain.id
    assert with_secret.open("p", plain.seal("p", b"secret", b"r" * 16).block) == b"secret"


@pytest.mark.parametrize(
    ("content", "mode", "why"),
    [
        ("a text", 0o644, "token_secret: others than its user may open .*; run: chmod 600"),
        ("", 0o600, "token_secret: .* must hold one line"),
        ("two\nlines\n", 0o600, "token_secret: .* must hold one line"),
    ],
)
def test_a_token_secret_that_can_not_be_used_stops_the_start(
    config: Path, content: str, mode: int, why: str
) -> None:
    write_new_secret(config.parent / "data" / FILE, KEY_BYTES)
    path = config.parent / "token-secret"
    path.write_text(content)
    path.chmod(mode)
    with pytest.raises(SettingsError, match=why):
        load_cluster_key(msgspec.structs.replace(settings(), token_secret="token-secret"), config)


def test_a_token_secret_needs_a_cluster_key(config: Path) -> None:
    with pytest.raises(SettingsError, match="without a cluster key"):
        load_cluster_key(msgspec.structs.replace(settings(), token_secret="x"), config)
