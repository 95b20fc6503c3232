from logberg.public import *  # noqa: F403 - the names of public.__all__
