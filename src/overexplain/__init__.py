"""How much of a linear model do its explanations give away?

Every public name is below, sorted; each is loaded when first used (PEP 562), so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "AlibiOracle": "oracles.libraries",
    "ArgmaxModel": "geometry.argmax",
    "ArgmaxOracle": "oracles.multiclass",
    "AuditReport": "report.notebook",
    "Boxed": "oracles.constrained",
    "BrokenPromise": "errors",
    "BudgetExhausted": "errors",
    "Budgeted": "oracles.wrappers",
    "CallableOracle": "oracles.libraries",
    "Certificate": "knowledge.certificates",
    "CertificateInvalid": "errors",
    "Certified": "scale.certify",
    "ClusterFailed": "errors",
    "DiceOracle": "oracles.libraries",
    "DimensionMismatch": "errors",
    "Disagreement": "knowledge.certificates",
    "Domain": "geometry.domain",
    "EndpointFailed": "errors",
    "Extraction": "extraction.result",
    "ExtractionFailed": "errors",
    "Flaky": "oracles.silent",
    "Float32": "oracles.degraded",
    "GroupNorm": "geometry.norms",
    "HttpOracle": "oracles.http.oracle",
    "Hyperplane": "geometry.hyperplane",
    "IMITATIONS": "oracles.imitations",
    "Immutable": "oracles.constrained",
    "InconsistentLog": "errors",
    "InvalidInput": "errors",
    "Kept": "oracles.kept",
    "Knowledge": "knowledge.engine",
    "LabelsOnly": "oracles.wrappers",
    "LinearModel": "models.linear",
    "Lp": "geometry.norms",
    "Mahalanobis": "geometry.norms",
    "Mechanism": "geometry.mechanism",
    "ModelOracle": "oracles.exact",
    "MonitorReport": "auditing.monitoring.monitor_report",
    "Monotone": "oracles.constrained",
    "MulticlassExtraction": "extraction.multiclass.result",
    "MulticlassModel": "models.multiclass",
    "MulticlassOracle": "oracles.multiclass",
    "MulticlassReport": "auditing.multiclass_report",
    "NO": "geometry.hyperplane",
    "NearestRow": "oracles.degraded",
    "NiceOracle": "oracles.libraries",
    "NoExplanation": "errors",
    "Noisy": "oracles.degraded",
    "Norm": "geometry.norms",
    "NotFinite": "errors",
    "OneHot": "oracles.constrained",
    "OneSided": "oracles.silent",
    "Oracle": "oracles.protocol",
    "OracleError": "errors",
    "OracleReport": "extraction.diagnosis.oracle_report",
    "OverexplainError": "errors",
    "Overshoot": "oracles.degraded",
    "Polyhedral": "geometry.norms",
    "Published": "oracles.wrappers",
    "QuadraticExtraction": "extraction.quadratic",
    "QuadraticModel": "geometry.quadratic",
    "QuadraticOracle": "oracles.quadratic",
    "QueryLog": "log.querylog",
    "RandomRadius": "oracles.degraded",
    "Recorded": "oracles.wrappers",
    "Rounded": "oracles.degraded",
    "Run": "log.store.run",
    "ScoreOracle": "oracles.scores",
    "Scored": "oracles.scores",
    "Service": "oracles.services",
    "SolverFailed": "errors",
    "Sparse": "oracles.constrained",
    "Spent": "extraction.result",
    "Status": "log.querylog",
    "Suboptimal": "oracles.degraded",
    "SwitchingNorm": "oracles.degraded",
    "UnsupportedModel": "errors",
    "UnsupportedNorm": "errors",
    "Verdict": "knowledge.verdicts",
    "Verdicts": "knowledge.verdicts",
    "Weighted": "geometry.norms",
    "YES": "geometry.hyperplane",
    "ZeroNormal": "errors",
    "audit": "report.notebook",
    "audit_multiclass": "auditing.multiclass",
    "baseline": "baselines.attacks",
    "certify_dataset": "scale.certify",
    "diagnose": "extraction.diagnosis.diagnose",
    "extract": "extraction.extract",
    "extract_multiclass": "extraction.multiclass.extract",
    "extract_quadratic": "extraction.quadratic",
    "imitate": "oracles.imitations",
    "l1": "geometry.norms",
    "l2": "geometry.norms",
    "linf": "geometry.norms",
    "load_model": "models.load",
    "load_multiclass": "models.load",
    "load_quadratic": "models.quadratic",
    "merge_logs": "log.merge",
    "monitor": "auditing.monitoring.monitor",
    "norm": "geometry.norms",
    "recover": "extraction.recover",
}

if TYPE_CHECKING:
    from overexplain.auditing.audit import audit
    from overexplain.auditing.audit_report import AuditReport
    from overexplain.auditing.monitoring.monitor import monitor
    from overexplain.auditing.monitoring.monitor_report import MonitorReport
    from overexplain.auditing.multiclass import audit_multiclass
    from overexplain.auditing.multiclass_report import MulticlassReport
    from overexplain.baselines.attacks import baseline
    from overexplain.errors import (
        BrokenPromise,
        BudgetExhausted,
        CertificateInvalid,
        ClusterFailed,
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
    from overexplain.extraction.diagnosis.diagnose import diagnose
    from overexplain.extraction.diagnosis.oracle_report import OracleReport
    from overexplain.extraction.extract import extract
    from overexplain.extraction.multiclass.extract import extract_multiclass
    from overexplain.extraction.multiclass.result import MulticlassExtraction
    from overexplain.extraction.quadratic import QuadraticExtraction, extract_quadratic
    from overexplain.extraction.recover import recover
    from overexplain.extraction.result import Extraction, Spent
    from overexplain.geometry.argmax import ArgmaxModel
    from overexplain.geometry.domain import Domain
    from overexplain.geometry.hyperplane import NO, YES, Hyperplane
    from overexplain.geometry.mechanism import Mechanism
    from overexplain.geometry.norms import GroupNorm, Lp, Mahalanobis, Norm, Polyhedral, Weighted, l1, l2, linf, norm
    from overexplain.geometry.quadratic import QuadraticModel
    from overexplain.knowledge.certificates import Certificate, Disagreement
    from overexplain.knowledge.engine import Knowledge
    from overexplain.knowledge.verdicts import Verdict, Verdicts
    from overexplain.log.merge import merge_logs
    from overexplain.log.querylog import QueryLog, Status
    from overexplain.log.store.run import Run
    from overexplain.models.linear import LinearModel
    from overexplain.models.load import load_model, load_multiclass
    from overexplain.models.multiclass import MulticlassModel
    from overexplain.models.quadratic import load_quadratic
    from overexplain.oracles.constrained import Boxed, Immutable, Monotone, OneHot, Sparse
    from overexplain.oracles.degraded import (
        Float32,
        NearestRow,
        Noisy,
        Overshoot,
        RandomRadius,
        Rounded,
        Suboptimal,
        SwitchingNorm,
    )
    from overexplain.oracles.exact import ModelOracle
    from overexplain.oracles.http.oracle import HttpOracle
    from overexplain.oracles.imitations import IMITATIONS, imitate
    from overexplain.oracles.kept import Kept
    from overexplain.oracles.libraries import AlibiOracle, CallableOracle, DiceOracle, NiceOracle
    from overexplain.oracles.multiclass import ArgmaxOracle, MulticlassOracle
    from overexplain.oracles.protocol import Oracle
    from overexplain.oracles.quadratic import QuadraticOracle
    from overexplain.oracles.scores import Scored, ScoreOracle
    from overexplain.oracles.services import Service
    from overexplain.oracles.silent import Flaky, OneSided
    from overexplain.oracles.wrappers import Budgeted, LabelsOnly, Published, Recorded
    from overexplain.scale.certify import Certified, certify_dataset

__all__ = [
    "IMITATIONS", "NO", "YES", "AlibiOracle", "ArgmaxModel", "ArgmaxOracle", "AuditReport", "Boxed", "BrokenPromise",
    "BudgetExhausted", "Budgeted", "CallableOracle", "Certificate", "CertificateInvalid", "Certified",
    "ClusterFailed", "DiceOracle", "DimensionMismatch", "Disagreement", "Domain", "EndpointFailed", "Extraction",
    "ExtractionFailed", "Flaky", "Float32", "GroupNorm", "HttpOracle", "Hyperplane", "Immutable", "InconsistentLog",
    "InvalidInput", "Kept", "Knowledge", "LabelsOnly", "LinearModel", "Lp", "Mahalanobis", "Mechanism", "ModelOracle",
    "MonitorReport", "Monotone", "MulticlassExtraction", "MulticlassModel", "MulticlassOracle", "MulticlassReport",
    "NearestRow", "NiceOracle", "NoExplanation", "Noisy", "Norm", "NotFinite", "OneHot", "OneSided", "Oracle",
    "OracleError", "OracleReport", "OverexplainError", "Overshoot", "Polyhedral", "Published", "QuadraticExtraction",
    "QuadraticModel", "QuadraticOracle", "QueryLog", "RandomRadius", "Recorded", "Rounded", "Run", "ScoreOracle",
    "Scored", "Service", "SolverFailed", "Sparse", "Spent", "Status", "Suboptimal", "SwitchingNorm",
    "UnsupportedModel", "UnsupportedNorm", "Verdict", "Verdicts", "Weighted", "ZeroNormal", "audit",
    "audit_multiclass", "baseline", "certify_dataset", "diagnose", "extract", "extract_multiclass",
    "extract_quadratic", "imitate", "l1", "l2", "linf", "load_model", "load_multiclass", "load_quadratic",
    "merge_logs", "monitor", "norm", "recover",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'overexplain' has no attribute {name!r}")
    value = getattr(import_module(f"overexplain.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
