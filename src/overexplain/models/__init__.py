"""Fitted and stored models become a hyperplane; untrusted code is never run."""
