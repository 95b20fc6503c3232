"""The error of a login that fails."""


class LoginRefusedError(Exception):
    """The credential is wrong. The message goes to the client and tells no secret."""
