"""How many labels any method needs, and how many ours takes: bits, for the direction to within an angle.

q labels tell at most 2^q models apart, and one answer is right for a cap of radius ε on the sphere of normals.
"""

from __future__ import annotations

import math

from scipy.special import betaln, gammaln

from overexplain.errors import InvalidInput


def information_bound(p: int, accuracy: float) -> float:
    """Labels that no method can do without, to know the normal to within `accuracy`: −log2 of the share of a cap.

    The share of a cap of radius ε on the sphere in p dimensions is ½ I_x((p−1)/2, ½) with x = sin² ε.

    >>> round(information_bound(3, 0.1), 6) == round(-math.log2((1 - math.cos(0.1)) / 2), 6)
    True
    """
    _check(p, accuracy)
    if accuracy >= math.pi:
        return 0.0
    if p == 1:
        return 1.0
    half = (p - 1) / 2
    if accuracy > math.pi / 2:
        return -math.log1p(-math.exp(_log_share(half, math.pi - accuracy))) / math.log(2)
    return -_log_share(half, accuracy) / math.log(2)


def box_floor(p: int, accuracy: float) -> float:
    """Labels that no method whose last cells are boxes can do without.

    A ball of radius ε holds no larger box than its cube: log2(V_n n^(n/2) / 2^n) more bits, n = p − 1, with V_n the volume of
    the unit ball. First order in ε.
    """
    n = p - 1
    if n <= 0:
        return information_bound(p, accuracy)
    volume = n / 2 * math.log(math.pi) - float(gammaln(n / 2 + 1))
    return information_bound(p, accuracy) + (volume + n / 2 * math.log(n)) / math.log(2) - n


def joint_bound(p: int, accuracy: float, half_width: float, radius: float) -> float:
    """Labels that no method can do without if all questions lie in a ball of `radius`.

    There the offset must be learnt too, to radius·tan ε, from an interval of ±`half_width`: a slab without a question in it
    holds planes tilted both ways.
    """
    _check(p, accuracy)
    if not (half_width > 0 and radius > 0):
        raise InvalidInput(f"half_width and radius must be positive, got {half_width!r} and {radius!r}")
    if accuracy >= math.pi / 2:
        return information_bound(p, accuracy)
    return information_bound(p, accuracy) + max(0.0, math.log2(half_width / (radius * math.tan(accuracy))))


def predicted_labels(p: int, accuracy: float, angle: float | None = None) -> float:
    """About how many labels `extract_by_labels` takes inside limits; `angle`: with a guess of the normal this far off.

    Fitted to benchmarks/labels.py: boxes, the offset to 1/p of the angle, and what finding a pair and asking again costs; with a
    guess (p − 1) log2(angle/accuracy) + 1.3 p for the coordinates, two labels each at least.
    """
    _check(p, accuracy)
    if p == 1:
        return 4 + math.log2(1 / min(accuracy, 1.0))
    cold = box_floor(p, accuracy) + 1.5 * math.log2(p) + math.log2(1 / min(accuracy, 1.0)) + 7 + 0.17 * p
    if angle is None:
        return cold
    coordinates = max(2.0 * p, (p - 1) * math.log2(max(angle, accuracy) / accuracy) + 1.3 * p)
    return min(cold, coordinates + math.log2(200 * math.sqrt(p) / accuracy))


def _check(p: int, accuracy: float) -> None:
    if p < 1:
        raise InvalidInput(f"the number of features must be positive, got {p!r}")
    if not accuracy > 0:
        raise InvalidInput(f"accuracy must be positive, got {accuracy!r}")


def _log_share(half: float, angle: float) -> float:
    """The natural logarithm of ½ I_x(half, ½), x = sin² angle, angle ≤ π/2; the share itself may be too small for float64."""
    x = math.sin(angle) ** 2
    if x > 0.9:
        from scipy.special import betainc

        return math.log(0.5 * float(betainc(half, 0.5, x)))
    # I_x(a, b) = x^a (1−x)^b / (a B(a, b)) · Σ_k x^k (a+b)…(a+b+k−1) / ((a+1)…(a+k))
    total, term, k = 1.0, 1.0, 0
    while term > 1e-17 * total:
        term *= x * (half + 0.5 + k) / (half + 1 + k)
        total += term
        k += 1
    first = half * math.log(x) + 0.5 * math.log1p(-x) - math.log(half) - float(betaln(half, 0.5))
    return first + math.log(total) - math.log(2)
