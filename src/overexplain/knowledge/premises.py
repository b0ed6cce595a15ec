"""What a proof takes from the log, so that a log that was changed is noticed, even where the arithmetic would still hold."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from overexplain.errors import CertificateInvalid
from overexplain.geometry.domain import Domain
from overexplain.geometry.norm import Norm
from overexplain.knowledge.answers import written_form
from overexplain.knowledge.proof_json import read_label, read_not_negative, read_row, refuse_unknown, show
from overexplain.log.querylog import QueryLog

LONGEST_DISTANCE = 200
"""A distance, or a domain, with a longer written form is named by its digest: a matrix in every proof would dwarf the proof."""

_TERMS = ("distance", "tolerance", "slack")
_ROBUST = ("robustness", "radius")
_DOMAIN = "domain"


@dataclass(frozen=True)
class Premise:
    """What a proof takes from one row of the log: the row itself, by its digest, and the terms it is read under.

    `is_explained` is False if only the label is used; a radius of 0 is that of a plain explanation, None a secret one; without
    a domain the explanation was chosen from all of R^p.
    """

    row: int
    digest: str
    label: int | None = None
    is_explained: bool = False
    distance: Any = None
    tolerance: float | None = None
    slack: float | None = None
    robustness: Any = None
    radius: float | None = 0.0
    domain: Any = None

    @staticmethod
    def of(log: QueryLog, row: int, tolerance: float | None = None) -> Premise:
        """The premise that row `row` of the log is."""
        entry = log[row]
        terms = entry.mechanism
        seen = hashlib.sha256(_bytes(entry.point) + bytes([(entry.label or 0) % 256]))
        if entry.explanation is not None:
            seen.update(_bytes(entry.explanation))
        digest = seen.hexdigest()
        if entry.explanation is None or terms is None:
            return Premise(row, digest, entry.label)
        used = terms.tolerance if tolerance is None else tolerance
        robustness = None if terms.is_plain else _brief(terms.robustness)
        distance, domain = _brief(terms.distance), _brief_domain(terms.domain)
        return Premise(row, digest, entry.label, True, distance, used, terms.slack, robustness, terms.radius, domain)

    def hold(self, log: QueryLog, tolerance: float | None) -> None:
        """None if the log's row is the one that the proof was made for; raises CertificateInvalid otherwise."""
        if not 0 <= self.row < len(log):
            raise CertificateInvalid(f"it rests on row {self.row}, but the log has {len(log)} rows")
        found = Premise.of(log, self.row, tolerance)
        if found.digest != self.digest or found.label != self.label:
            raise CertificateInvalid(f"row {self.row} of the log is not the row that the proof was made for")
        for name in ("is_explained", *_TERMS, *_ROBUST, _DOMAIN):
            mine, theirs = getattr(self, name), getattr(found, name)
            if mine != theirs:
                raise CertificateInvalid(f"row {self.row}: the proof rests on {name} {mine!r}, the log says {theirs!r}")

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready form."""
        entry: dict[str, Any] = {"row": self.row, "sha256": self.digest}
        if self.label is not None:
            entry["label"] = self.label
        if self.is_explained:
            entry |= {"distance": self.distance, "tolerance": self.tolerance, "slack": self.slack}
        if self.radius != 0:
            entry |= {"robustness": self.robustness, "radius": self.radius}
        if self.domain is not None:
            entry[_DOMAIN] = self.domain
        return entry

    @staticmethod
    def from_dict(entry: Any, what: str) -> Premise:
        """The premise that `to_dict` wrote."""
        known = ("row", "sha256", "label", *_TERMS, *_ROBUST, _DOMAIN)
        entry = refuse_unknown(entry, known, ("row", "sha256"), what)
        is_robust = any(key in entry for key in _ROBUST)
        is_explained = is_robust or any(key in entry for key in (*_TERMS, _DOMAIN))
        refuse_unknown(entry, entry, (*(_TERMS if is_explained else ()), *(_ROBUST if is_robust else ())), what)
        if not isinstance(entry["sha256"], str):
            raise CertificateInvalid(f"{what}: sha256 must be a string, got {show(entry['sha256'])}")
        if not isinstance(entry.get(_DOMAIN, {}), dict):
            raise CertificateInvalid(f"{what}: domain must be an object, got {show(entry[_DOMAIN])}")
        return Premise(
            read_row(entry["row"], f"{what}: row"),
            entry["sha256"],
            read_label(entry["label"], f"{what}: label") if "label" in entry else None,
            is_explained,
            entry.get("distance"),
            read_not_negative(entry.get("tolerance"), f"{what}: tolerance"),
            read_not_negative(entry.get("slack"), f"{what}: slack"),
            entry.get("robustness"),
            read_not_negative(entry.get("radius", 0.0), f"{what}: radius"),
            entry.get(_DOMAIN),
        )


def _bytes(x: Any) -> bytes:
    """The numbers' bytes, the same on every machine; −0.0 is 0.0."""
    return (np.asarray(x, dtype=np.float64) + 0.0).astype("<f8").tobytes()


@lru_cache(maxsize=64)
def _brief(distance: Norm | None) -> Any:
    """A written form as it stands if it is short, else its kind and digest."""
    spec = written_form(distance)
    text = json.dumps(spec, sort_keys=True)
    if len(text) <= LONGEST_DISTANCE:
        return spec
    return {"norm": spec["norm"], "sha256": hashlib.sha256(text.encode()).hexdigest()}


@lru_cache(maxsize=64)
def _brief_domain(domain: Domain | None) -> Any:
    """A domain as it stands if it is short, else its dimension and digest."""
    if domain is None:
        return None
    written = domain.to_dict()
    text = json.dumps(written, sort_keys=True)
    if len(text) <= LONGEST_DISTANCE:
        return written
    return {"dimension": domain.dimension, "sha256": hashlib.sha256(text.encode()).hexdigest()}
