"""Labels only: how few of them show the model, and what no method can do without."""
