"""Published attacks, written from their papers, behind `extract`'s signature: what our own methods are compared with."""
