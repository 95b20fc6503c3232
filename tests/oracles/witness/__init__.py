"""Our log before a witness by other hands, and our witness before that witness's own test cases."""
