"""Pseudonyms on one controller: who has one, who gets one, and where names enter (ADR 0093).

Rule: behind the door of this controller a person has no name. A login's principal, and each name in
a request, becomes a pseudonym before the request is decided. So rights, quotas, tokens and the log
hold pseudonyms, and nothing behind the door knows of names, but for searches of the log by a name.

- `giving`: finds pseudonyms, and has the leader write new ones;
- `named_fields`: where requests name people;
- `hidden_names`: takes names out of the texts of recorded attempts;
- `door`: puts pseudonyms into a request;
- `parts`: the parts of this room, wired.

The door is `door` and `parts`.
"""
