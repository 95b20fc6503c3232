"""The folds: from decoded records to the rows of tables, in plain Python and Arrow.

`slices` makes of a piece of the log what the folds need, as `messages`. `transactions` says which
records count. `partitions` and `cluster` fold them, and `carried` is what they remember between two
micro-batches. `checkpoint` begins them for a log that was cut. `arrow_values` reads Arrow.
"""
