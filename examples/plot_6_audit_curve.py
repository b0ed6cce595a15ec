"""
The audit's curve
=================

How many decisions about other people are determined after k ordinary explanations? Every point of the curve counts
decisions on which all models that fit the first k answers agree.
"""

import matplotlib.pyplot as plt
import numpy as np

import overexplain as ox

rng = np.random.default_rng(0)
features = 6
secret = ox.Hyperplane(rng.normal(size=features), 0.2)
others = rng.normal(size=(120, features))


def curve(distance, order):
    """The share determined after 1, 2, ... answers."""
    service = ox.ModelOracle(secret, ox.Mechanism(distance))
    known = ox.Knowledge(ox.QueryLog(mechanism=service.mechanism))
    shares = []
    for x in order:
        known.add(x, label=service.classify(x), explanation=service.explain(x))
        shares.append(known.share(others))
    return shares


counts = range(1, features + 2)
for distance, style in (("l1", "-"), ("linf", "--"), ("l2", ":")):
    runs = [curve(distance, rng.normal(size=(features + 1, features))) for _ in range(3)]
    middle = np.median(runs, axis=0)
    plt.plot(counts, middle, style, label=distance)
    print(distance, " ".join(f"{share:.0%}" for share in middle))
plt.axvline(features, color="grey", linewidth=0.8)
plt.xlabel("explanations of ordinary cases")
plt.ylabel("share of other decisions determined")
plt.legend(title="distance")
plt.show()

# %%
# ``overexplain audit`` draws this for a model of yours, with decisions, robust services and defences beside it, and suggests
# a quota that keeps the curve under a target.
