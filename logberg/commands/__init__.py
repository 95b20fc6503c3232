"""The subcommands, one file a noun."""
