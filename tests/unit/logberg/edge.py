"""Run a command as the program does, within this process: exit code, stdout and stderr."""

from typing import NamedTuple

import pytest
from click.testing import CliRunner

from logberg.cli.main import main


class Said(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def both(self) -> str:
        return self.out + self.err


def run_whole(*arguments: str, env: dict[str, str] | None = None) -> Said:
    """Run `logberg` with these arguments, through `main`."""
    code = 0
    with CliRunner().isolation(env=env) as (out, err, _), pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["logberg", *arguments])
        try:
            main()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        return Said(code, out.getvalue().decode(), err.getvalue().decode())
