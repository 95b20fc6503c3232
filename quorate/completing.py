"""The two names by which a shell's completion and this program know each other."""

PROGRAM = "quorate"
VARIABLE = "_QUORATE_COMPLETE"
