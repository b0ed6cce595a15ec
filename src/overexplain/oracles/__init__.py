"""Who answers: classify and explain, nothing else."""
