"""What was asked and answered: columnar, append-only."""
