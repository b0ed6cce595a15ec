"""How it is shown: renders data, computes no number."""
