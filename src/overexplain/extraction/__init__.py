"""How few questions rebuild the model."""
