"""What a log gives away, with proofs; asks no new questions."""
