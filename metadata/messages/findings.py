"""Answers to the question why something is as it is, such as why a broker is fenced.

Rule: a finding is a sentence for people, with the thing that it is about, so that a program can ask
for more. Every finding follows from the state that the answer was read from.
"""

from metadata.messages.message import ReplyMessage


class Explanation(ReplyMessage, frozen=True):
    """One reason."""

    about: str
    """`partition`, `replica:<broker>`, `broker:<id>`: as in `logberg audit who`."""
    says: str
    """A sentence."""


class ExplainBrokerReply(ReplyMessage, frozen=True):
    """Why a broker is fenced, or may not stop."""

    offset: int
    epoch: int
    broker_id: int
    state: str
    findings: tuple[Explanation, ...]
    age_ms: int | None = 0
