"""The two names by which a shell's completion and this program know each other."""

PROGRAM = "logberg"
VARIABLE = "_LOGBERG_COMPLETE"
