"""The rules that make the core safe from outside; each module says which, and why."""
