"""What a few questions show about a service: its distance, margins, grid, limits and habits."""
