"""A group of commands that names the nearest one when a command is mistyped."""

from difflib import get_close_matches

import click


class SuggestingGroup(click.Group):
    """Like `click.Group`; "No such command" ends with what may have been meant."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = get_close_matches(args[0], self.list_commands(ctx))
            if not near or "Did you mean" in error.message:
                raise
            meant = " or ".join(map(repr, near))
            raise click.UsageError(f"{error.message} Did you mean {meant}?", ctx) from None
