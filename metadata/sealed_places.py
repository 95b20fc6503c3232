"""Where the log holds secrets: the place that each sealed block is bound to.

Controllers seal with these names (`controller.managers`); agents open with them
(`broker_agent.opened_secrets`). They are in logs for ever.
"""

from typing import Final

from metadata.sealing import ClusterKey
from metadata.subject_keys import SubjectKeys, SubjectKeysError

_TOKENS: Final = "delegation tokens"


def scram_place(user: str, mechanism: int, field: str) -> str:
    """Return the place of a key of a SCRAM credential; `field`: storedKey or serverKey."""
    return f"scram/{int(mechanism)}/{field}/{user}"


def user_subject(name: str) -> str:
    """Return the subject that a user's secrets are about, in the words of `Record.subjects`."""
    return f"user:{name}"


def tree_place(keys_id: str) -> str:
    """Return the place of a tree of subjects' keys, outside the log; `keys_id`: in hex."""
    return f"subject keys/{keys_id}"


def opened_tree(key: ClusterKey, keys_id: str, data: bytes) -> SubjectKeys:
    """Return a tree of subjects' keys from its sealed bytes. Raises SealingError, SubjectKeysError.

    `keys_id`: the id, in hex, under which it was found.
    """
    keys = SubjectKeys.decode(key.open(tree_place(keys_id), data))
    if keys.id.hex() != keys_id:
        raise SubjectKeysError(f"{keys_id} holds the tree {keys.id.hex()}")
    return keys


def config_place(resource_type: int, resource_name: str, key: str) -> str:
    """Return the place of a config's value."""
    return f"config/{int(resource_type)}/{key}/{resource_name}"


def token_hmac(key: ClusterKey, token_id: str) -> bytes:
    """Return a delegation token's secret: HMAC-SHA-512 of its id, as in Kafka.

    Kafka's brokers make it of `delegation.token.secret.key`; with the same text here they take our
    tokens.
    """
    return key.token_hmac(_TOKENS, token_id.encode())
