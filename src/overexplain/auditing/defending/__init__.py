"""Defences attacked one by one: what they cost the attacker, and the applicant."""
