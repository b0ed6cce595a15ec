"""What it means for the owner: frozen data, no formatting."""
