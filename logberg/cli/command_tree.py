"""The commands of `logberg`, each in a module of `logberg.commands`.

Rule: `LazyGroup` imports a command when somebody calls it. So a controller imports no tables, and a
table imports no controller.
"""

import click

from logberg.cli.lazy_group import LazyGroup
from logberg.version import VERSION

_HELP_LINES = {
    "demo": "Check the main guarantees on a cluster of real processes.",
    "up": "Start a cluster on this machine and show it; Ctrl-C stops it.",
    "kafka": "Run Apache Kafka's own brokers and tools with our controllers.",
    "status": "Show the cluster's controllers and brokers, and their offsets.",
    "whoami": "Show as whom the controllers know you.",
    "doctor": "Check clocks, disks, certificates, releases and the log of all nodes.",
    "support-bundle": "Gather what helpers need in one file, without secrets.",
    "top": "Watch controllers, brokers and changes as they commit.",
    "certs": "Make, renew, date and revoke certificates.",
    "quorum": "Show the voters, and how far each is behind; recover a lost majority.",
    "brokers": "List, describe and unregister brokers.",
    "features": "Show, raise and lower feature levels.",
    "topics": "Create, list, describe and delete topics.",
    "partitions": "List and describe partitions, add partitions, elect leaders.",
    "reassign": "Move partitions to other brokers.",
    "explain": "Say why a partition, a broker, a lock or a key is as it is.",
    "acls": "Add, remove, list and check access control entries, and roles.",
    "configs": "Show and change configs of topics, brokers, groups.",
    "quotas": "Set, remove, list and resolve quotas of clients.",
    "users": "Set, delete and list users' SCRAM credentials.",
    "tokens": "Make, list, rotate and revoke access tokens of people and services.",
    "join-token": "Make, list and revoke tokens with which a node gets its certificate.",
    "join": "Get this node's certificate with a join token.",
    "delegation-tokens": "Create, renew, expire and list delegation tokens.",
    "pseudonyms": "Show which person a pseudonym stands for.",
    "erase": "Destroy the key of a user's secrets on every controller, for good.",
    "coordination": "Sessions, groups, elections, locks and keys of services; run under a lock.",
    "apply": "Make topics, configs, quotas, ACLs and users as files declare them.",
    "diff": "Show how the cluster differs from what files declare.",
    "export": "Write the cluster's state as a file for apply.",
    "import": "Take over what another store holds, as one change.",
    "watch": "Show the changes of one topic, broker or user as they happen.",
    "log": "Dump, replay and verify a log on disk.",
    "backup": "Make, list, verify and restore backups.",
    "audit": "Query and verify a log: past states, who changed what, damage.",
    "controller": "Run a controller in the foreground.",
    "broker": "Run a broker agent in the foreground.",
    "witness": "Run a witness in the foreground: it cosigns heads of logs.",
    "cluster-id": "Generate an id for a new cluster.",
    "cluster-key": "Generate the key that seals a cluster's secrets.",
    "completion": "Print a script that lets a shell complete commands.",
}


@click.group(
    cls=LazyGroup,
    package="logberg.commands",
    help_lines=_HELP_LINES,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(VERSION, message="logberg %(version)s")
def cli() -> None:
    """Logberg: a self-managed metadata quorum in the style of KIP-500."""
