"""`python -m logberg` is `logberg`."""

from logberg.cli import main

main()
