"""
What robust explanations give away
==================================

A robust explanation keeps its label for a whole ball. The published description of what it reveals is safe, but leaves
out a part of it; the library has four levels, from that one to all there is.
"""

import matplotlib.pyplot as plt
import numpy as np

import overexplain as ox

rng = np.random.default_rng(2)
terms = ox.Mechanism("linf", robustness="l1", radius=0.3)
service = ox.ModelOracle(ox.Hyperplane([1.0, 0.5, -1.5, 0.3], 0.4), terms)
asked = rng.normal(size=(20, 4)).round(2)
log = ox.QueryLog(mechanism=terms)
log.add_label(asked[:17], service.classify(asked[:17]))
log.add_explanation(asked[17:], service.explain(asked[17:]), label=service.classify(asked[17:]))
applicants = rng.normal(size=(80, 4)).round(3)

shares = {}
for level in ("paper", "perspective", "shared", "exact"):
    verdicts = ox.Knowledge(log, robust=level).certify(applicants)
    shares[level] = np.isin(verdicts.codes, (ox.YES, ox.NO)).mean()
    print(f"{level:12} {verdicts}")

# %%
# Nothing is claimed about an UNDECIDED point. At the level ``exact`` none is left: every other point is UNKNOWN, with two
# models as proof.

plt.barh(list(shares), list(shares.values()), color="#115e9a")
plt.gca().invert_yaxis()
plt.xlabel("share of decisions that are proved to be determined")
plt.xlim(0, 1)
plt.show()
