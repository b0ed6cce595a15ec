"""Files of DiCE (JSON, version 2) as logs, and back."""
