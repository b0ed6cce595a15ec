"""Chains: the explanation of the explanation of the explanation. Answers that are a little too long still converge to the plane.

Let m = |a·x − b|. An answer z across the plane with ‖z − x‖ ≤ (1 + s)·optimum has m(z) + m(x) = |a·(z − x)| ≤ (1 + s) m(x), so

    m(z) ≤ s·m(x)        and, as then (1 + 1/s) m(z) ≤ |a·(z − x)|,        m(z)/‖a‖₂ ≤ s/(1 + s)·‖z − x‖₂.

The second bound is seen from outside and needs no norm: whatever distance the service uses, a chain's last step tells how
far its end is from the plane. The ends of p chains, one more to confirm them, and `fit_plane` make the model, without a label.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from overexplain.errors import BrokenPromise, ExtractionFailed, InvalidInput, NoExplanation
from overexplain.extraction.inexact.fitted import Fitted, euclidean_stretch, fit_plane
from overexplain.extraction.job import Job
from overexplain.extraction.precision import answer_error, grid_tolerance
from overexplain.extraction.result import Extraction
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.hyperplane import NO, YES, Hyperplane
from overexplain.geometry.lp import l2
from overexplain.geometry.norm import Norm

MAX_STARTS = 12
"""So many points are tried before a service counts as one that explains nothing."""

CRAMPED = 0.1
"""Where bounds leave less than this share of the room that chains want, they start nearer to the middle of the bounds."""

RETRIES = 2
"""A link that is refused, or echoed, is asked for so often again: some services fail at random."""

INNER_STARTS = 4
"""Where the first explanation lies outside the bounds, so many random starts between them are tried."""

PLACES = ((1.0, 0.0), (1.0, 1.0), (0.3, 0.0), (0.3, 0.3), (0.1, 0.0), (0.03, 0.0))
"""Where chains start: so much of the way to a corner around the first chain's end, so many first steps back from the plane.

If a chain leaves the allowed region it is begun nearer to the end that is known; if its start is refused or echoed, as some
services do next to the plane, farther from the plane.
"""

ROUNDS = 8
"""So often the chains are made longer after a look at what they prove."""

MOST_SLACK = 0.95
"""An estimated slack is corrected by what the links show up to here; beyond, chains take too many links."""

SAME = 1e-12
"""Ends that differ by less than this, relative to their size, are one point."""

FLOOR = 8.0
"""A chain that stops coming closer within so many tolerances of the plane was stopped by rounding, not by a broken promise."""

GRID_SAMPLE = 256
"""So many moved entries are looked at for a grid in the digits."""


def predict_chain(p: int, accuracy: float, slack: float) -> int:
    """About how many requests a chain extraction takes: p + 1 chains and a label.

    A service that goes too far by a random share of its slack shrinks each link by slack/e on average (e = 2.718…), one that
    always uses it up by slack only.

    >>> predict_chain(30, 1e-6, 0.3), predict_chain(30, 1e-6, 0.0)
    (249, 32)
    """
    links = 1 if slack == 0 else max(1, math.ceil(math.log(math.sqrt(p + 1) / accuracy) / (1 - math.log(slack))))
    return (p + 1) * links + 1


def extract_by_chain(job: Job, slack: float, norm: Norm | None = None, declared: bool = False) -> Extraction:
    """The hyperplane from chains of answers that are at most 1 + `slack` times as far away as the nearest one, slack < 1.

    norm       the service's distance, if known: every link is then checked as it comes, else when the model is there
    declared   the service promises this slack: `error_bound` rests on it. Else it is an estimate, corrected upwards if links
               show more, and no bound is given.
    """
    if not 0 <= slack < 1:
        raise InvalidInput(f"chains converge for a slack of at least 0 and below 1, got {slack!r}")
    session, p = job.session, job.session.dimension
    label_asked = int(job.orient and session.can_label)
    session.require(p + 1 + label_asked, "rebuilding the model from chains")
    links = _Links(job, slack, norm, declared)
    chains = _spread_chains(links)
    fit = _lengthen(links, chains)
    _check_links(links, chains, fit)
    plane = Hyperplane(fit.normal, fit.level)
    if label_asked:
        away = max((chain.points[0] for chain in chains), key=lambda x: abs(plane.margin(x)))
        plane = plane if session.label(away) == (YES if plane.margin(away) > 0 else NO) else plane.flipped()
    lengths = [len(chain.points) - 1 for chain in chains]
    found = Extraction(
        hyperplane=plane,
        spent=session.spent,
        log=session.log,
        method=f"chains of explanations: {len(chains)} chains of {min(lengths)} to {max(lengths)} links",
        assumptions=_assumptions(links, chains, fit, job.accuracy),
        exact=False,
        error_bound=fit.angle_bound if declared else None,
        offset_bound=fit.offset_bound if declared else None,
        oriented=bool(label_asked),
        radius=0.0,
        radius_bound=None,
        unidentified=np.zeros((0, p)),
        premise=f"no answer is more than {1 + slack:g} times as far as the nearest",
    )
    if norm is None:
        return found
    turned = 0.0 if found.error_bound is None else euclidean_stretch(norm, p) * found.error_bound
    return found.rescaled(float(norm.dual(plane.normal)), turned)


@dataclass
class _Chain:
    """A start, its explanation, the explanation of that, …; `rows` are their places in the log, `over` says why it ended."""

    points: list[FloatArray]
    rows: list[int] = field(default_factory=list)
    over: str | None = None

    @property
    def end(self) -> FloatArray:
        """The last point."""
        return self.points[-1]


class _Links:
    """Asks for links, and knows what each of them proves."""

    def __init__(self, job: Job, slack: float, norm: Norm | None, declared: bool) -> None:
        self.job, self.slack, self.declared = job, slack, declared
        self.is_known = norm is not None
        self.norm = l2 if norm is None else norm
        self.stretch = euclidean_stretch(self.norm, job.session.dimension)
        mechanism = job.session.mechanism
        self.tolerance = None if mechanism is None else mechanism.tolerance
        self.notes: list[str] = []
        self._seen: list[FloatArray] = []

    def grow(self, chain: _Chain, goal: float) -> None:
        """Add links until the end is proved to lie within `goal` of the plane, or the chain cannot go on."""
        most = len(chain.points) + self._most_links(chain, goal)
        while chain.over is None and self.error(chain) > goal:
            if len(chain.points) > most:
                if self.error(chain) > FLOOR * self.tolerance_of(*chain.points[-2:]) and not self.sees_grid():
                    raise self.broken(chain, "has come no closer to the plane, link after link", 0.0)
                chain.over = "rounding"
                return
            self.link(chain)

    def link(self, chain: _Chain) -> None:
        """One more link, or a reason why there is none."""
        session, x = self.job.session, chain.end
        if not self.job.where.contains(x):
            chain.over = "outside"
            return
        reply = session.attempt(x)
        for _ in range(RETRIES):
            if reply.answer is not None:
                break
            reply = session.attempt(x)
        if reply.answer is None:
            chain.over = "echo" if reply.failure == "echo" else "refused"
            return
        chain.points.append(reply.answer)
        chain.rows.append(session.row)
        if sum(len(entries) for entries in self._seen) < GRID_SAMPLE:
            self._seen.append(reply.answer[reply.answer != x])
        if self.is_known:
            self._check_step(chain)
        tolerance = self.tolerance_of(x, reply.answer)
        if self.slack * float(l2(reply.answer - x)) <= tolerance:
            chain.over = "rounding"

    def error(self, chain: _Chain) -> float:
        """How far, in the 2-norm, the chain's end can be from the plane: s/(1+s)·‖last step‖, with the answer's own tolerance."""
        if len(chain.points) < 2:
            return math.inf
        x, z = chain.points[-2:]
        tolerance = self.tolerance_of(x, z)
        return self.slack / (1 + self.slack) * (float(l2(z - x)) + tolerance) + tolerance

    def tolerance_of(self, x: FloatArray, z: FloatArray) -> float:
        """How far, in the 2-norm, the answer z to x may lie from the point it stands for."""
        return self.stretch * answer_error(self.norm, self.tolerance, x, z)

    def _most_links(self, chain: _Chain, goal: float) -> int:
        """More links than a service that keeps its promise can need, whatever its distance is."""
        if self.slack == 0 or len(chain.points) < 2:
            return 64 if self.slack == 0 else math.ceil(64 / -math.log(self.slack))
        room = math.log(max(1.0, self.error(chain) / goal) * 10 * len(chain.end))
        return math.ceil(room / -math.log(self.slack)) + 4

    def _check_step(self, chain: _Chain) -> None:
        """In the service's own distance a step is at most s times the one before it, up to the answers' tolerance."""
        if len(chain.points) < 3:
            return
        x, y, z = chain.points[-3:]
        before, now = float(self.norm(y - x)), float(self.norm(z - y))
        for allow in (lambda: None, self.sees_grid):
            allow()
            earlier, later = (answer_error(self.norm, self.tolerance, *pair) for pair in ((x, y), (y, z)))
            excess = now - (self.slack * before + (1 + 2 * self.slack) * earlier + later)
            if excess <= 0:
                return
        self.doubt(chain, now / before if before > 0 else math.inf, excess)

    def doubt(self, chain: _Chain, ratio: float, excess: float) -> None:
        """A link came less close than promised: correct an estimate, refuse a promise."""
        if self.declared or not ratio < MOST_SLACK:
            raise self.broken(chain, f"came closer by a factor {ratio:.3g} only, not {self.slack:.3g}", excess)
        self.slack = max(self.slack, ratio * (1 + 1e-9))

    def broken(self, chain: _Chain, what: str, excess: float) -> BrokenPromise:
        """The error that names the chain's last link."""
        row = chain.rows[-1]
        return BrokenPromise(
            f"the explanation in log row {row} is the explanation of an explanation and {what}: the answers are not at most "
            f"{1 + self.slack:.4g} times as far away as the nearest ones. They may be rounded, noisy, or go past the plane by a "
            "fixed amount",
            fact="NearOptimal",
            excess=excess,
            row=row,
        )

    def sees_grid(self) -> bool:
        """True if the answers lie on a grid; its half step is then their tolerance from now on."""
        if self.tolerance is not None or not self._seen:
            return False
        grid = grid_tolerance(self.norm, self.job.session.dimension, np.concatenate(self._seen)[:GRID_SAMPLE])
        if grid is None:
            return False
        self.tolerance = grid[0]
        self.notes.append(grid[1])
        return True


def _spread_chains(links: _Links) -> list[_Chain]:
    """One chain from the start, and p whose ends surround its end evenly: a simplex across the direction of the first answer."""
    job, p = links.job, links.job.session.dimension
    scale = 1 / links.norm.units(p)
    for start in (job.start, *_inner_starts(job)):
        first = _first_chain(links, start)
        step = (first.points[1] - first.points[0]) / scale
        reach = max(float(l2(step)), float(l2(first.end / scale)))
        goal = 0.8 * job.accuracy * reach * float(np.median(scale)) / math.sqrt(p + 1)
        links.grow(first, goal)
        if first.over != "outside" or links.error(first) <= goal:
            break
    else:
        raise ExtractionFailed(
            "the first explanations lie outside the bounds, so that their own explanations cannot be asked for: widen them, or "
            "start (start=) where the nearest explanation is inside"
        )
    links.sees_grid()
    if first.over == "refused" and links.error(first) > goal:
        _refuse_one_sided(links, first)
    centre = job.where.clip(first.end)
    chains = [first]
    corners = scale * _simplex(step, job.rng)
    if min(job.where.room(centre, along) for along in corners) < CRAMPED * reach:
        centre = job.where.clip(centre / 2 + job.where.centre() / 2)
    for along in corners:
        distance = min(reach, 0.9 * job.where.room(centre, along))
        for share, back in PLACES:
            chain = _Chain([job.where.clip(centre + share * distance * along - back * scale * step)])
            links.grow(chain, goal)
            if len(chain.points) > 1 and (chain.over != "outside" or links.error(chain) <= goal):
                break
        if len(chain.points) > 1:
            chains.append(chain)
    return chains


def _inner_starts(job: Job) -> list[FloatArray]:
    """The middle of the bounds, and points between it and random ones: explanations from there are more likely inside."""
    middle = job.where.centre()
    size = max(1.0, 2 * float(np.abs(job.start - middle).max()))
    random = job.rng.normal(size=(INNER_STARTS, len(middle))) * size
    return [middle, *(job.where.clip(middle + step) / 2 + middle / 2 for step in random)]


def _first_chain(links: _Links, start: FloatArray) -> _Chain:
    """The first link from the start, or from points around it if the start is not explained."""
    job, x = links.job, start
    units = links.norm.units(len(x))
    for attempt in range(MAX_STARTS):
        chain = _Chain([x])
        links.link(chain)
        if len(chain.points) > 1:
            return chain
        size = max(1.0, float(np.abs(start * units).max())) * 2.0 ** (attempt - 2)
        x = job.where.clip(start + size * job.rng.normal(size=len(x)) / units)
    raise NoExplanation(
        f"the service explained none of {MAX_STARTS} starts at several distances; give start=, a point that it explains"
    )


def _refuse_one_sided(links: _Links, first: _Chain) -> None:
    """A point well beyond an explanation that is not explained itself: if it is not explained either, one side never is."""
    x, z = first.points[-2:]
    beyond = links.job.where.clip(z + 2 * (z - x))
    probe = _Chain([beyond])
    links.link(probe)
    if len(probe.points) < 2:
        raise NoExplanation(
            "the service explains one side only: the explanation of an explanation, which a chain asks for, lies on the other "
            "side. With labels a warm-started bisection needs no second side"
        )


def _simplex(step: FloatArray, rng: np.random.Generator) -> FloatArray:
    """p unit vectors (rows) that sum to 0 and are orthogonal to the step: the corners of a regular simplex, turned at random."""
    p = len(step)
    if p == 1:
        return -np.sign(step)[None, :]
    frame = np.linalg.qr(np.column_stack([step, rng.normal(size=(p, p - 1))]))[0][:, 1:]
    corners = np.linalg.qr(np.column_stack([np.ones(p), rng.normal(size=(p, p - 1))]))[0][:, 1:]
    return np.asarray(corners @ frame.T * math.sqrt(p / (p - 1)))


def _lengthen(links: _Links, chains: list[_Chain]) -> Fitted:
    """The plane through the ends, after the chains were made as long as the accuracy asks for."""
    p, accuracy = links.job.session.dimension, links.job.accuracy
    if len(chains) < max(2, p):
        raise ExtractionFailed(
            f"only {len(chains)} of {p + 1} chains were answered: too few to determine a plane in {p} dimensions"
        )
    links.sees_grid()
    goal = max(links.error(chain) for chain in chains)
    for _ in range(ROUNDS):
        fit = fit_plane([chain.end for chain in chains], [links.error(chain) for chain in chains])
        open_chains = [chain for chain in chains if chain.over is None]
        if not open_chains or (fit.angle_bound is not None and fit.angle_bound <= accuracy):
            break
        goal *= 0.1 if fit.angle_bound is None else max(1e-3, 0.7 * accuracy / fit.angle_bound)
        for chain in open_chains:
            links.grow(chain, goal)
    ends = np.array([chain.end for chain in chains])
    sizes, right = np.linalg.svd(ends - ends.mean(axis=0))[1:]
    rank = int((sizes > SAME * max(float(sizes[0]), float(np.abs(ends).max()))).sum())
    if rank < p - 1:
        raise ExtractionFailed(
            f"the ends of {len(chains)} chains determine {rank} of {p - 1} directions of the plane: the service may change some "
            "features only, or refuse explanations of points near the plane",
            unidentified=right[rank:],
        )
    return fit


def _check_links(links: _Links, chains: list[_Chain], fit: Fitted) -> None:
    """With the model in hand: the first end lies on the plane of the others, every link crossed it and came closer by s."""
    if fit.angle_bound is None:
        return
    errors = [links.error(chain) for chain in chains]
    others = fit_plane([chain.end for chain in chains[1:]], errors[1:]) if len(chains) > len(fit.normal) else None
    if others is not None and others.angle_bound is not None:
        middle = np.mean([chain.end for chain in chains[1:]], axis=0)
        miss = abs(float(others.normal @ (chains[0].end - middle)))
        allowed = float(np.mean(errors[1:])) + errors[0] + 2 * others.angle_bound * float(l2(chains[0].end - middle))
        if miss > allowed:
            raise links.broken(chains[0], f"misses the plane of the other chains by {miss:.3g}", miss - allowed)
    centre = np.mean([chain.end for chain in chains], axis=0)
    for chain in chains:
        points = np.array(chain.points)
        margins = (points - centre) @ fit.normal
        unsure = 2 * fit.angle_bound * np.linalg.norm(points - centre, axis=1) + max(errors)
        for k in range(1, len(points)):
            seen = replace(chain, points=chain.points[: k + 1], rows=chain.rows[:k])
            same_side = margins[k] * margins[k - 1] > 0 and abs(margins[k]) > 2 * unsure[k]
            if same_side and abs(margins[k - 1]) > 2 * unsure[k - 1]:
                raise links.broken(seen, "did not cross the plane", abs(float(margins[k])))
            tolerance = links.tolerance_of(points[k - 1], points[k])
            allowed = links.slack * (abs(margins[k - 1]) + unsure[k - 1]) + unsure[k] + 3 * tolerance
            if abs(margins[k]) > allowed:
                ratio = float(abs(margins[k]) / abs(margins[k - 1]))
                links.doubt(seen, ratio, float(abs(margins[k]) - allowed))


def _assumptions(links: _Links, chains: list[_Chain], fit: Fitted, accuracy: float) -> tuple[str, ...]:
    size = f"answers are at most {1 + links.slack:.6g} times as far away as the nearest ones"
    notes = [
        size + (", as the service declares" if links.declared else "; this was estimated, not declared: no error bound")
    ]
    notes += links.notes or ["answers are float64 roundings of such points"] * (links.tolerance is None)
    if fit.angle_bound is None or fit.angle_bound > accuracy:
        reasons = {
            "rounding": "its answers' own rounding",
            "refused": "refusals near the plane",
            "echo": "echoes near the plane",
            "outside": "bounds",
        }
        ends = sorted({reasons[chain.over] for chain in chains if chain.over is not None})
        notes.append(f"the accuracy asked for ({accuracy:.1g}) was not reached: chains were ended by {', '.join(ends)}")
    return tuple(notes)
