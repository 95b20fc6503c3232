"""Why a source can't be read."""


class SourceError(Exception):
    """A source can't be read; the message says why, and what to do."""
