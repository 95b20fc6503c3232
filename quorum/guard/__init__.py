"""The rules that make the core safe from outside: see `spec` in docs/design for each hole."""
