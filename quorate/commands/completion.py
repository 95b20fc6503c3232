"""`quorate completion`."""

import click
from click.shell_completion import get_completion_class

from quorate.completing import PROGRAM, VARIABLE


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the script by which a shell completes commands and options.

    \b
    bash: quorate completion bash > ~/.local/share/bash-completion/completions/quorate
    zsh:  quorate completion zsh > "${fpath[1]}/_quorate"
    fish: quorate completion fish > ~/.config/fish/completions/quorate.fish
    """  # noqa: D301 - click's mark for lines that stay as they are
    kind = get_completion_class(shell)
    assert kind is not None, "click knows these three"
    root = click.get_current_context().find_root().command
    click.echo(kind(root, {}, PROGRAM, VARIABLE).source())
