"""What every controller does with committed batches: apply them, compare states, answer reads.

Here lives the way from committed bytes to the next image, and the reads that wait for it. Nothing
here decides, and nothing here knows HTTP.
"""
