"""How much of a linear model do its explanations give away?

Every public name is below, sorted; each is loaded when first used (PEP 562), so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "BrokenPromise": "errors",
    "BudgetExhausted": "errors",
    "Budgeted": "oracles.wrappers",
    "Certificate": "knowledge.certificates",
    "CertificateInvalid": "errors",
    "DimensionMismatch": "errors",
    "Disagreement": "knowledge.certificates",
    "EndpointFailed": "errors",
    "Extraction": "extraction.result",
    "ExtractionFailed": "errors",
    "GroupNorm": "geometry.norms",
    "Hyperplane": "geometry.hyperplane",
    "InconsistentLog": "errors",
    "InvalidInput": "errors",
    "Knowledge": "knowledge.engine",
    "LinearModel": "models.linear",
    "Lp": "geometry.norms",
    "Mahalanobis": "geometry.norms",
    "Mechanism": "geometry.mechanism",
    "ModelOracle": "oracles.exact",
    "NO": "geometry.hyperplane",
    "NoExplanation": "errors",
    "Norm": "geometry.norms",
    "NotFinite": "errors",
    "Oracle": "oracles.protocol",
    "OracleError": "errors",
    "OverexplainError": "errors",
    "Polyhedral": "geometry.norms",
    "QueryLog": "log.querylog",
    "Recorded": "oracles.wrappers",
    "SolverFailed": "errors",
    "Spent": "extraction.result",
    "Status": "log.querylog",
    "UnsupportedModel": "errors",
    "UnsupportedNorm": "errors",
    "Verdict": "knowledge.verdicts",
    "Verdicts": "knowledge.verdicts",
    "Weighted": "geometry.norms",
    "YES": "geometry.hyperplane",
    "ZeroNormal": "errors",
    "extract": "extraction.extract",
    "l1": "geometry.norms",
    "l2": "geometry.norms",
    "linf": "geometry.norms",
    "load_model": "models.load",
    "norm": "geometry.norms",
    "recover": "extraction.recover",
}

if TYPE_CHECKING:
    from overexplain.errors import (
        BrokenPromise,
        BudgetExhausted,
        CertificateInvalid,
        DimensionMismatch,
        EndpointFailed,
        ExtractionFailed,
        InconsistentLog,
        InvalidInput,
        NoExplanation,
        NotFinite,
        OracleError,
        OverexplainError,
        SolverFailed,
        UnsupportedModel,
        UnsupportedNorm,
        ZeroNormal,
    )
    from overexplain.extraction.extract import extract
    from overexplain.extraction.recover import recover
    from overexplain.extraction.result import Extraction, Spent
    from overexplain.geometry.hyperplane import NO, YES, Hyperplane
    from overexplain.geometry.mechanism import Mechanism
    from overexplain.geometry.norms import (
        GroupNorm,
        Lp,
        Mahalanobis,
        Norm,
        Polyhedral,
        Weighted,
        l1,
        l2,
        linf,
        norm,
    )
    from overexplain.knowledge.certificates import Certificate, Disagreement
    from overexplain.knowledge.engine import Knowledge
    from overexplain.knowledge.verdicts import Verdict, Verdicts
    from overexplain.log.querylog import QueryLog, Status
    from overexplain.models.linear import LinearModel
    from overexplain.models.load import load_model
    from overexplain.oracles.exact import ModelOracle
    from overexplain.oracles.protocol import Oracle
    from overexplain.oracles.wrappers import Budgeted, Recorded

__all__ = [
    "NO", "YES", "BrokenPromise", "BudgetExhausted", "Budgeted", "Certificate", "CertificateInvalid",
    "DimensionMismatch", "Disagreement", "EndpointFailed", "Extraction", "ExtractionFailed", "GroupNorm", "Hyperplane",
    "InconsistentLog", "InvalidInput", "Knowledge", "LinearModel", "Lp", "Mahalanobis", "Mechanism", "ModelOracle",
    "NoExplanation", "Norm", "NotFinite", "Oracle", "OracleError", "OverexplainError", "Polyhedral", "QueryLog",
    "Recorded", "SolverFailed", "Spent", "Status", "UnsupportedModel", "UnsupportedNorm", "Verdict", "Verdicts",
    "Weighted", "ZeroNormal", "extract", "l1", "l2", "linf", "load_model", "norm", "recover",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'overexplain' has no attribute {name!r}")
    value = getattr(import_module(f"overexplain.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
