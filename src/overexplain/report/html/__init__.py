"""The audit report as one HTML file that needs nothing else: no address, no font, no script but its own."""
