"""Why another attack can be ahead of ours: the first reason that fits is given."""

from __future__ import annotations

from peers_losses import Reason

REASONS: tuple[Reason, ...] = (
    Reason(
        "Probabilities are equations. p + 1 of them, unrounded, are the model; every label or counterfactual says less. Ours does "
        "not use them: where a service gives probabilities away, equation solving is the attack to size its quota by.",
        attacks=("equations",),
        kind=("scores",),
    ),
    Reason(
        "Ours takes its time. It works out each next question, and checks the answers and the finished model against all "
        "that was said; others draw questions at random and train once at the end. Milliseconds a request, next to a service that "
        "has to be asked over a network.",
        columns=("seconds",),
    ),
    Reason(
        "Parallel answers. Under l2 every answer lies along the normal, however far past the plane it goes: a few of them are the "
        "normal to rounding, for averaging as for ours. What is open is the offset, until labels have been asked; after hardly any "
        "requests it is a guess for both.",
        attacks=("averaging",),
        kind=("random radius", "like wachter"),
    ),
    Reason(
        "A published mechanism that is not quite true. This service says that its answers are optimal and goes on 0.001 past the "
        "plane. Ours takes its word (the assumptions of the result say so) and is off by that; trained models look at labels near "
        "the plane and end up closer.",
        columns=("offset",),
        kind=("like solver",),
    ),
    Reason(
        "The first labels of ours are a plan, not a model. It brackets the coordinates of the normal one by one, which is what "
        "makes 1e-6 rad cheap later; when the budget ends before all have a bracket there is little to show. A classifier "
        "trained on as many random labels is a guess from the start, and never gets as close.",
        kind=("labels",),
        up_to=5,
    ),
    Reason(
        "Ours looks before it believes. A service that promises nothing is first asked the questions that tell which kind it "
        "is (some 20 explanations and up to 50 labels), then for labels, which need their own start. Others train on answers of "
        "unknown quality at once, which is the better bet for so few requests, and stays where it is with more.",
        kind=("noisy", "random radius", "like"),
        up_to=10,
    ),
    Reason(
        "Rounded answers inside a box. Ours bounds what rounding can have done to one answer; where that is too much for the angle "
        "wanted it goes on from there with labels. Averaging many rounded answers takes the errors out without knowing how many "
        "are left.",
        kind=("rounded",),
        up_to=10,
    ),
    Reason(
        "A few requests short. Ours needs p + 2 answers before chains of suboptimal explanations say anything, or "
        "a few labels more to find a denied case, and raises BudgetExhausted before it sends what cannot be enough.",
        kind=("suboptimal", "denied only"),
        up_to=2,
    ),
    Reason(
        "Chains that the box cuts off. Answers that are a little too long come closer and closer to the plane if one asks about "
        "them in turn, but only inside the box; where its wall ends the chains ours has to start again with labels, and the "
        "budget ends first.",
        kind=("suboptimal",),
        attacks=("averaging", "dualcf", "surrogate", "clamping", "retraining"),
        up_to=5,
    ),
)
