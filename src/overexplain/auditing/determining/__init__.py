"""Which decisions are determined after so many answers: orders of asking, what each gives away, quotas."""
