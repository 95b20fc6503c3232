"""What was run, how often, and what came of it: pieces of evidence, and the page made of them."""
