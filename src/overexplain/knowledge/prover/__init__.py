"""Claims about every model of some facts: an active-set search proposes, and only what pays for its rounding is believed."""
