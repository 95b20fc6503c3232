"""One name, one meaning: no two public classes of the product have the same name.

Rule: `SAME_NAME` says of each exception why its classes may share a name. The verifier is not
searched: it is one file by itself and names what the format's page names.
"""

import ast
from collections import Counter

from tests.docs import source

SAME_NAME = {
    "Asking": "the way to our routes: over the network, and in process for Kafka",
    "BrokerEndpoint": "a broker's address: as a setting, and as part of a record",
    "ControllerView": "a controller as others see it: a client, and handlers for Kafka",
    "Endpoint": "a broker's address: as the agent's setting, and as part of a message",
    "EpochStart": "where an epoch begins: by the ledger's index, and by the image",
    "FieldSchema": "a field of a schema: of our records, and of Kafka's messages",
    "Finding": "what somebody should look at: in a log's bytes, and in what the log says",
    "Membership": "who belongs: the quorum's voters, and, in KIP-30's words, a client's in a group",
    "Record": "a fact in the log, and, as other stores say it, a key with its value and revisions",
    "Registrations": "of brokers: what the leader knows of them, and what takes Kafka's request",
    "Storage": "a controller's files, and, in KIP-30's words, the keys of a store",
    "Turns": "what goes one after another: parts of long replies, and steps of a Kafka request",
    "Voter": "a member of the quorum: as part of a record, and as the quorum knows it",
    "Watch": "of changes: the request that a controller holds, and a client's iterator of events",
    "WrongFolderError": "a folder of somebody else: of the agent's image, and of the journal",
}


def class_names() -> Counter[str]:
    """How many public classes of the product have each name."""
    paths = [path for package in source.PACKAGES for path in (source.ROOT / package).rglob("*.py")]
    return Counter(
        node.name
        for path in paths
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )


def test_classes_of_one_name_are_one_thing() -> None:
    names = class_names()
    assert len(names) > 300
    assert {name for name, count in names.items() if count > 1} == set(SAME_NAME)
