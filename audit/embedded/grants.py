"""The job `grants`: who held which lock, led which election or was in which group, and when."""

from typing import Any

from audit.questions.holders import held_grants
from audit.reading.feed import Feed, Question
from metadata.uuids import uuid_text

Row = tuple[Any, ...]


def grants(question: Question) -> list[Row]:
    """Return the rows of `audit.tables.GRANTS`."""
    feed = Feed(question)
    beginning = feed.beginning()
    rows = [
        (
            grant.resource,
            grant.token,
            grant.id,
            uuid_text(grant.session_id),
            grant.owner,
            grant.client_name,
            grant.from_offset,
            grant.from_ms,
            grant.until_offset,
            grant.until_ms,
            grant.ended_by,
        )
        for grant in held_grants("", feed.moments(beginning), beginning)
    ]
    return sorted(rows, key=lambda row: row[:2])
