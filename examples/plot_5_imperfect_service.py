"""
A service that is not what theory assumes
=========================================

Real services round their answers, overshoot, or search at random. ``diagnose`` finds out how a service behaves;
``extract`` then goes the cheapest way that is left, and says how sure it can be.
"""

import matplotlib.pyplot as plt
import numpy as np

import overexplain as ox

secret = ox.Hyperplane(np.random.default_rng(0).normal(size=6), 0.5)
exact = ox.ModelOracle(secret, "l1")
silent_about_it = ox.Mechanism(None, slack=None)  # all that is published: the label flips

services = {
    "exact, terms stated": exact,
    "rounded to 2 decimals": ox.Rounded(exact, 2, published=silent_about_it),
    "overshoots by 0.05": ox.Overshoot(exact, 0.05, published=silent_about_it),
    "up to 30 % too long": ox.Suboptimal(exact, 0.3, rng=0, published=silent_about_it),
}
spent = {}
for name, service in services.items():
    found = ox.extract(service, accuracy=1e-6, rng=0)
    spent[name] = found.spent
    error = found.hyperplane.angle_to(secret)
    print(
        f"{name:22} {found.spent.explanations:3} explanations, {found.spent.labels:3} labels, {error:.0e} radians off"
    )
    print(f"{'':22} {found.method}")

explanations = [answers.explanations for answers in spent.values()]
plt.figure(figsize=(7, 3), layout="constrained")
plt.barh(list(spent), explanations, color="#115e9a", label="explanations")
plt.barh(
    list(spent), [answers.labels for answers in spent.values()], left=explanations, color="#cfe2f1", label="labels"
)
plt.gca().invert_yaxis()
plt.xlabel("requests until the model is known to 1e-6, diagnosis included")
plt.legend()
plt.show()

# %%
# What a diagnosis says
# ---------------------

report = ox.diagnose(services["rounded to 2 decimals"], rng=0)
print("distance:", report.family, "  grid:", report.grid, "  the same answer twice:", report.deterministic)
print(report.theorem)
