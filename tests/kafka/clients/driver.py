"""Runs calls of a client library in the Python that has the library.

    python driver.py < JSON

It imports nothing of ours. JSON has `names`, which the calls may use, `setup`, statements that run
first, and `calls`, expressions with `text` and `until`. Both may `await`. For each call one line of
JSON comes out: `printed` and `refused`. A call is repeated until it prints what stands in `until`.
"""

import ast
import asyncio
import inspect
import json
import pprint
import sys

TRIES = 20
PAUSE_S = 0.5
WIDTH = 110


async def run(code, kind, names):
    """Evaluate an expression (`eval`), or run statements (`exec`)."""
    compiled = compile(code, "<call>", kind, flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    value = eval(compiled, names)
    return await value if inspect.iscoroutine(value) else value


def shown(value):
    """Return a value as the page shows it."""
    if value is None:
        return ""
    return value if isinstance(value, str) else pprint.pformat(value, width=WIDTH, compact=True)


async def once(code, names):
    """Return what a call printed, and whether it was refused."""
    try:
        return shown(await run(code, "eval", names)), False
    except Exception as error:  # noqa: BLE001 - the table says which calls are refused
        return f"{type(error).__name__}: {error}", True


async def main():
    """Run all calls."""
    wanted = json.load(sys.stdin)
    names = dict(wanted["names"])
    await run(wanted["setup"], "exec", names)
    for call in wanted["calls"]:
        for _ in range(TRIES):
            printed, refused = await once(call["text"], names)
            if call["until"] in printed:
                break
            await asyncio.sleep(PAUSE_S)
        print(json.dumps({"printed": printed, "refused": refused}), flush=True)
    await run(wanted["teardown"], "exec", names)


if __name__ == "__main__":
    asyncio.run(main())
