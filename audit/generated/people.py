"""Who acts in a made-up cluster: people, services, brokers, controllers; and what they say of it.

Rule: an actor is what a carrier establishes (principal, method, address), never more; reasons are
given by people, and by services only as services give them.
"""

from typing import Final, NamedTuple

from runtime.http.requests import Caller


class Actor(NamedTuple):
    """Somebody who changes something."""

    principal: str
    auth_method: str
    address: str = ""
    client_id: str = ""
    on_behalf_of: str = ""

    @property
    def caller(self) -> Caller:
        """As a transport has authenticated it."""
        return Caller(self.principal, self.auth_method, self.address)

    def headers(self, reason: str) -> dict[str, str]:
        """Return what a request says beside its body."""
        said = {
            "x-logberg-client-id": self.client_id,
            "x-logberg-on-behalf-of": self.on_behalf_of,
            "x-logberg-reason": reason,
        }
        return {name: value for name, value in said.items() if value}


ALICE: Final = Actor("User:alice", "certificate", "10.0.4.21", "logberg-cli")
BOB: Final = Actor("User:bob", "certificate", "10.0.4.22", "logberg-cli")
CAROL: Final = Actor("User:carol", "token", "10.0.5.37", "notebook")
DAVE: Final = Actor("User:dave", "certificate", "10.0.4.30", "logberg-cli")
ERIN: Final = Actor("User:erin", "token", "10.0.5.41", "logberg-cli")
HEIDI: Final = Actor("User:heidi", "certificate", "10.8.0.9", "logberg-cli")
MALLORY: Final = Actor("User:mallory", "token", "10.9.77.3", "curl")
ROOT: Final = Actor("User:root", "unix-socket", "", "logberg-cli")

DEPLOY_BOT: Final = Actor("User:deploy-bot", "certificate", "10.0.9.11", "deploy-bot/4.2")
TOPIC_OPERATOR: Final = Actor("User:topic-operator", "certificate", "10.0.9.12", "operator/1.9")
BALANCER: Final = Actor("User:balancer", "certificate", "10.0.9.13", "balancer/2.5")
VAULT: Final = Actor("User:vault", "certificate", "10.0.9.14", "vault-plugin")
SPARK_JOBS: Final = Actor("User:spark-jobs", "token", "10.0.12.5", "spark/4.3")
CONNECT: Final = Actor("User:connect", "token", "10.0.12.6", "connect-worker-1")
SCHEDULERS: Final = (
    Actor("User:scheduler", "certificate", "10.0.12.21", "scheduler-a"),
    Actor("User:scheduler", "certificate", "10.0.12.22", "scheduler-b"),
)

PEOPLE: Final = (ALICE, BOB, CAROL, ERIN)
SERVICES: Final = (TOPIC_OPERATOR, CONNECT, SPARK_JOBS)
ON_CALL: Final = HEIDI
SECURITY: Final = DAVE

APPLICATIONS: Final = (
    "billing",
    "checkout",
    "inventory",
    "search",
    "shipping",
    "fraud",
    "ledger-export",
    "mobile-api",
    "recommendations",
    "web",
)
"""Users of the data: they have credentials, quotas and ACLs, and change nothing themselves."""

WHY: Final = {
    "CreateTopics": ("new service goes live", "load test, remove me next week", "JIRA-4411", ""),
    "DeleteTopics": ("load test is over", "not read for 90 days", "renamed", "JIRA-4502"),
    "CreatePartitions": ("consumers lag at noon", "Black Friday", ""),
    "ConfigTopic": ("disk is filling up", "team asked for a longer look back", "GDPR: 30 days", ""),
    "ConfigBroker": ("throttle while replicas move", "tuning after the storm", ""),
    "CreateAcls": ("access for the new consumer, approved by its owner", "JIRA-4620", "onboarding"),
    "DeleteAcls": ("service is gone", "quarterly review of access", "offboarding"),
    "AlterUserScramCredentials": ("quarterly rotation", "password was in a ticket", ""),
    "AlterClientQuotas": ("noisy neighbour", "the campaign starts on Monday", "back to normal"),
    "AlterPartitionReassignments": ("new brokers get their share", "disk of one broker at 85 %"),
    "Restart": ("kernel update", "heap settings", "it leaks file descriptors"),
}
"""What people give as reasons; empty: nothing."""


def broker_actor(broker_id: int, rack: int, on_behalf_of: str = "") -> Actor:
    """Return a broker as it calls the controller."""
    address = f"10.1.{rack}.{10 + broker_id}"
    client = "forwarding" if on_behalf_of else ""
    return Actor(f"Broker:{broker_id}", "certificate", address, client, on_behalf_of)
