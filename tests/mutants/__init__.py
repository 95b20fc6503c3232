"""Mutants: deliberately broken builds, each of which must die, or the suite proves nothing.

`patches` breaks a build, `table` lists every mutant with the promise that it breaks and what is
kept to kill it, `seed_searches` runs seeds with a mutant on, `directed` runs tests with one on.
"""
