"""Writes a configuration file in TOML; the standard library only reads it."""

from typing import Any

import msgspec


def to_toml(config: dict[str, Any]) -> str:
    """Write a flat table, with tables and lists of tables one level down, as TOML."""
    tables = {key: value for key, value in config.items() if isinstance(value, dict)}
    lists = {
        key: value
        for key, value in config.items()
        if isinstance(value, list) and value and isinstance(value[0], dict)
    }
    lines = [
        f"{key} = {_toml_value(value)}"
        for key, value in config.items()
        if key not in tables and key not in lists
    ]
    for key, table in tables.items():
        lines += ["", f"[{key}]", *(_line(k, v) for k, v in table.items())]
    for key, rows in lists.items():
        for row in rows:
            lines += ["", f"[[{key}]]", *(_line(k, v) for k, v in row.items())]
    return "\n".join(lines) + "\n"


def _line(key: str, value: Any) -> str:
    # A dot in a bare key would make a table.
    return f"{_toml_value(key) if '.' in key else key} = {_toml_value(value)}"


def _toml_value(value: Any) -> str:
    if isinstance(value, dict):
        pairs = (f"{_toml_value(key)} = {_toml_value(each)}" for key, each in value.items())
        return f"{{ {', '.join(pairs)} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml_value, value))}]"
    # JSON's strings, numbers and booleans are TOML's too.
    return msgspec.json.encode(value).decode()
