"""Exact answers that may not go everywhere: features that do not move, boxes, one-hot groups."""
