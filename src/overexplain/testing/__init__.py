"""The contracts as functions, shipped so that users can run them on their own norms and oracles."""
