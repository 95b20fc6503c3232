"""What every connection goes through, whatever its protocol: listening, admission, limits, TLS.

Here lives the code between an accepted socket and its protocol. Nothing here knows HTTP or the
frames between controllers. Door: every module but `first_bytes`.
"""
