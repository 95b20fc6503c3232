"""Requests to real controllers over HTTP, and how late their loops are meanwhile."""
