"""The version of this software; pyproject.toml says the same (a test compares)."""

VERSION = "0.2.0"
