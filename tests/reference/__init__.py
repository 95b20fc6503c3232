"""A second state machine: what a log means, written from docs/format.md and docs/format/ alone.

Rule: nothing of the product is imported here, and neither is anything that imports it; so where
both agree on a state's hash, two programs that share no line read the log alike. Where they don't,
the page is unclear or the product is wrong, and one of the two is mended: never only this one.
"""
