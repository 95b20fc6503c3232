"""The client of the controllers: `asking` sends its requests, `operations` has its methods."""

from logberg.client.operations import Operations


class LogbergClient(Operations):
    """`async with LogbergClient([...]) as client: await client.topics()`."""
