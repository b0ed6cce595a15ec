"""A live endpoint as an oracle: what it is told in a TOML file, how it is asked, paced and read."""
