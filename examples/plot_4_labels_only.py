"""
Labels only
===========

A service that says Yes and No and explains nothing can be rebuilt too; it takes more questions, about 3.3 for each
feature and digit. Each label halves what is left of one coefficient, so the bound on the error is a proof.
"""

import matplotlib.pyplot as plt
import numpy as np

import overexplain as ox

rng = np.random.default_rng(0)
secret = ox.Hyperplane(rng.normal(size=10), 0.5)
silent = ox.LabelsOnly(ox.ModelOracle(secret, "l1"))

accuracies = [1e-1, 1e-2, 1e-3, 1e-4, 1e-6, 1e-8]
labels, errors, bounds = [], [], []
for accuracy in accuracies:
    found = ox.extract(silent, accuracy=accuracy, rng=0)
    labels.append(found.spent.labels)
    errors.append(found.hyperplane.angle_to(secret))
    bounds.append(found.error_bound)
    print(f"{accuracy:.0e}: {found.spent.labels} labels, {errors[-1]:.1e} radians off, proved {bounds[-1]:.1e}")

# %%
# The proved bound is never below the true error, and not far above it.

plt.semilogy(labels, bounds, marker="o", label="proved bound")
plt.semilogy(labels, errors, marker="s", label="true error")
plt.xlabel("labels asked")
plt.ylabel("angle to the true model (radians)")
plt.legend()
plt.show()
