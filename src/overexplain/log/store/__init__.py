"""A run in one SQLite file: what was asked is durable before it is sent, what was said before it is used."""
