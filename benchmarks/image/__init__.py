"""One core and one image: replay, checkpoints, maps with chosen keys."""
