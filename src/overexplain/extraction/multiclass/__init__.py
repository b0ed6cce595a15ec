"""How few answers rebuild a linear classifier of several classes."""
