"""Logs as tables, CSV and Parquet: which column is what, and what every cell says."""
