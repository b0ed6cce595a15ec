"""The same verdicts over data sets larger than memory, or than one machine."""
