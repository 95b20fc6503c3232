"""The front door: command line, local cluster, settings, the HTTP client."""
