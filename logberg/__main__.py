"""`python -m logberg` is `logberg`."""

from logberg.cli.main import main

main()
