"""Answers that are not exact: chains that close in on the plane, estimates, and labels that make a guess certain."""
