"""The public names are frozen: others build on them."""

from __future__ import annotations

import subprocess
import sys

import overexplain as ox

NAMES = [
    "AlibiOracle",
    "ArgmaxModel",
    "ArgmaxOracle",
    "AuditReport",
    "Boxed",
    "BrokenPromise",
    "BudgetExhausted",
    "Budgeted",
    "CallableOracle",
    "Certificate",
    "CertificateInvalid",
    "Certified",
    "ClusterFailed",
    "DiceOracle",
    "DimensionMismatch",
    "Disagreement",
    "Domain",
    "EndpointFailed",
    "Extraction",
    "ExtractionFailed",
    "Flaky",
    "Float32",
    "GroupNorm",
    "HttpOracle",
    "Hyperplane",
    "IMITATIONS",
    "Immutable",
    "InconsistentLog",
    "InvalidInput",
    "Kept",
    "Knowledge",
    "LabelsOnly",
    "LinearModel",
    "Lp",
    "Mahalanobis",
    "Mechanism",
    "ModelOracle",
    "MonitorReport",
    "Monotone",
    "MulticlassExtraction",
    "MulticlassModel",
    "MulticlassOracle",
    "MulticlassReport",
    "NO",
    "NearestRow",
    "NiceOracle",
    "NoExplanation",
    "Noisy",
    "Norm",
    "NotFinite",
    "OneHot",
    "OneSided",
    "Oracle",
    "OracleError",
    "OracleReport",
    "OverexplainError",
    "Overshoot",
    "Polyhedral",
    "Published",
    "QuadraticExtraction",
    "QuadraticModel",
    "QuadraticOracle",
    "QueryLog",
    "RandomRadius",
    "Recorded",
    "Rounded",
    "Run",
    "ScoreOracle",
    "Scored",
    "Service",
    "SolverFailed",
    "Sparse",
    "Spent",
    "Status",
    "Suboptimal",
    "SwitchingNorm",
    "UnsupportedModel",
    "UnsupportedNorm",
    "Verdict",
    "Verdicts",
    "Weighted",
    "YES",
    "ZeroNormal",
    "audit",
    "audit_multiclass",
    "baseline",
    "certify_dataset",
    "diagnose",
    "extract",
    "extract_multiclass",
    "extract_quadratic",
    "imitate",
    "l1",
    "l2",
    "linf",
    "load_model",
    "load_multiclass",
    "load_quadratic",
    "merge_logs",
    "monitor",
    "norm",
    "recover",
]


def test_public_names_are_these_and_all_resolve() -> None:
    assert sorted(ox.__all__) == NAMES
    assert set(ox.__all__) == set(ox._HOME)
    for name in NAMES:
        assert getattr(ox, name) is not None
    assert set(NAMES) <= set(dir(ox))


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(ox, "no_such_name")


def test_importing_the_package_loads_nothing_heavy() -> None:
    heavy = ("numpy", "scipy", "sklearn", "rich", "pandas")
    code = f"import sys, overexplain; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
