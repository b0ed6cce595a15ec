"""What a log has already given away, to whom, and who asks as an attacker would."""
