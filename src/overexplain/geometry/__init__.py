"""What a distance, a linear model and a service's terms are; the only place signs are converted."""
