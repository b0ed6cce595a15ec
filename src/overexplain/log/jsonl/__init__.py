"""Logs as JSON Lines: our own, written and read back exactly, and those of others."""
