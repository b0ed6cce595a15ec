"""
How many answers does each distance need?
=========================================

One hidden model, three ways to measure how far a change is. Under the straight-line distance (l2) one explanation gives
the whole model away. Under the sum of changes (l1) and the largest change (linf) it takes one for each feature, and no
attack can do with fewer.
"""

import matplotlib.pyplot as plt
import numpy as np

import overexplain as ox

rng = np.random.default_rng(0)
secret = ox.Hyperplane(rng.normal(size=12), 0.5)

for distance in ("l2", "l1", "linf"):
    service = ox.ModelOracle(secret, ox.Mechanism(distance))
    found = ox.extract(service, rng=0)
    error = found.hyperplane.angle_to(secret)
    print(
        f"{distance:4}: {found.spent.explanations:2} explanations, {error:.0e} radians off, proved: {found.error_bound:.0e}"
    )

# %%
# How the number grows
# --------------------
# The same for models of 2 to 40 features.

sizes = [2, 5, 10, 20, 30, 40]
styles = {"l1": ("s", 5.0, 0.35), "linf": ("^", 1.5, 1.0), "l2": ("o", 1.5, 1.0)}
for distance, (marker, width, alpha) in styles.items():
    spent = []
    for size in sizes:
        model = ox.Hyperplane(rng.normal(size=size), 0.5)
        spent.append(ox.extract(ox.ModelOracle(model, ox.Mechanism(distance)), rng=0).spent.explanations)
    plt.plot(sizes, spent, marker=marker, label=distance, linewidth=width, alpha=alpha)
plt.xlabel("features")
plt.ylabel("explanations until the model is known")
plt.legend(title="distance")
plt.show()
