"""`logberg completion`."""

import click
from click.shell_completion import get_completion_class

from logberg.cli.completion_names import PROGRAM, VARIABLE


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print a script that lets your shell complete commands and options.

    \b
    bash: logberg completion bash > ~/.local/share/bash-completion/completions/logberg
    zsh:  logberg completion zsh > "${fpath[1]}/_logberg"
    fish: logberg completion fish > ~/.config/fish/completions/logberg.fish
    """  # noqa: D301 - click's mark for lines that stay as they are
    kind = get_completion_class(shell)
    assert kind is not None, "click knows these three"
    root = click.get_current_context().find_root().command
    click.echo(kind(root, {}, PROGRAM, VARIABLE).source())
