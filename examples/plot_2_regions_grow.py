"""
How the certain regions grow
============================

A log of labels and one or two explanations. Where every line that fits the log says Yes (blue) or No (orange), the
decision is known to whoever holds the log; in between (white) it is open.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap

import overexplain as ox

line = ox.Hyperplane([1.0, 2.0], 2.0)
lender = ox.ModelOracle(line, ox.Mechanism("l1"))
rng = np.random.default_rng(3)
questions = rng.uniform(-4, 4, size=(12, 2)).round(1)
axis = np.linspace(-4, 4, 161)
grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)


# %%
# What a log determines
# ---------------------
# ``Knowledge`` is given the log, not the lender.


def show(axes, labels, explanations, title):
    log = ox.QueryLog(mechanism=lender.mechanism)
    if labels:
        log.add_label(questions[:labels], lender.classify(questions[:labels]))
    for x in questions[:explanations]:
        log.add_explanation(x, lender.explain(x), label=lender.classify(x))
    verdicts = ox.Knowledge(log).certify(grid)
    sides = verdicts.sides.reshape(161, 161)
    colours = ListedColormap(["#f8ddc4", "#ffffff", "#cfe2f1"])
    axes.imshow(sides, origin="lower", extent=(-4, 4, -4, 4), cmap=colours, vmin=-1, vmax=1)
    for x, label in zip(log.points, log.labels, strict=True):
        axes.plot(*x, "o" if label == ox.YES else "s", color="#115e9a" if label == ox.YES else "#9e4403", markersize=5)
    for x, answer in zip(log.points[log.explained], log.explanations[log.explained], strict=True):
        axes.annotate("", answer, x, arrowprops={"arrowstyle": "->"})
    axes.set_title(f"{title}: {np.mean(sides != 0):.0%}", fontsize=10)
    axes.set_xticks([])
    axes.set_yticks([])


logs = [
    (3, 0, "3 labels"),
    (6, 0, "6 labels"),
    (12, 0, "12 labels"),
    (0, 1, "1 explanation"),
    (12, 1, "and 12 labels"),
    (0, 2, "2 explanations"),
]
figure, panels = plt.subplots(2, 3, figsize=(9, 6.2), layout="constrained")
for axes, (labels, explanations, title) in zip(panels.flat, logs, strict=True):
    show(axes, labels, explanations, title)
plt.show()
