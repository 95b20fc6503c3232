"""Writes to a store that knows no locks: a database keeps the largest token beside the data.

    python examples/coordination/fenced_write.py quorum+http://127.0.0.1:9093 accounts.db 100

A lock alone doesn't protect the database: its holder may be paused for a minute, lose the lock
without knowing it, and write then. So each write brings the lock's token, and the database refuses
a token that is smaller than one it has seen. The comparison and the write are one transaction.
"""

import asyncio
import sqlite3
import sys
from pathlib import Path

from logberg import Fenced, Token, connect

TABLES = """
CREATE TABLE IF NOT EXISTS fence (resource TEXT PRIMARY KEY, token INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS account (id TEXT PRIMARY KEY, balance INTEGER NOT NULL);
"""


class Accounts:
    """The outside store."""

    def __init__(self, path: Path) -> None:
        self._database = sqlite3.connect(path)
        self._database.executescript(TABLES)

    def set_balance(self, balance: int, resource: str, token: int) -> None:
        """Write, unless a larger token was here before. Raises Fenced."""
        with self._database:
            row = self._database.execute(
                "SELECT token FROM fence WHERE resource = ?", (resource,)
            ).fetchone()
            if row is not None and token < row[0]:
                raise Fenced(f"token {token} is older than {row[0]}", current_token=Token(row[0]))
            self._database.execute("REPLACE INTO fence VALUES (?, ?)", (resource, token))
            self._database.execute("REPLACE INTO account VALUES ('main', ?)", (balance,))

    def balance(self) -> int:
        """Return what was written last."""
        row = self._database.execute("SELECT balance FROM account WHERE id = 'main'").fetchone()
        return 0 if row is None else row[0]

    def close(self) -> None:
        """Close the database."""
        self._database.close()


async def deposit(url: str, accounts: Accounts, amount: int) -> int:
    """Add to the balance while we hold the lock; returns the lock's token."""
    async with connect(url) as coordinator, coordinator.lock("account")() as grant:
        balance = accounts.balance() + amount
        grant.check()
        # A pause may fall right here, behind the check. The token makes it harmless.
        accounts.set_balance(balance, "account", grant.token)
        return grant.token


if __name__ == "__main__":
    store = Accounts(Path(sys.argv[2]))
    token = asyncio.run(deposit(sys.argv[1], store, int(sys.argv[3])))
    print(f"balance {store.balance()}, written with token {token}")
    store.close()
