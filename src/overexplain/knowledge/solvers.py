"""HiGHS and Clarabel, called directly: programs that are set up once and solved for one cost after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from overexplain.geometry.arrays import FloatArray

TOLERANCE = 1e-10


def highs_of(
    matrix: Any, cost: FloatArray, bounds: tuple[FloatArray, FloatArray], rows: tuple[FloatArray, FloatArray]
) -> Any:
    """A linear program: cost, bounds of the variables, bounds of matrix·v. It starts from where it ended the last time."""
    import highspy

    used = sparse.csr_matrix(matrix)
    program = highspy.HighsLp()
    program.num_col_, program.num_row_ = used.shape[1], used.shape[0]
    program.col_cost_, program.col_lower_, program.col_upper_ = cost, *bounds
    program.row_lower_, program.row_upper_ = rows
    program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    program.a_matrix_.start_, program.a_matrix_.index_, program.a_matrix_.value_ = used.indptr, used.indices, used.data
    highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    for name, value in (("output_flag", False), ("threads", 1), ("presolve", "off")):
        highs.setOptionValue(name, value)
    for name in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
        highs.setOptionValue(name, TOLERANCE)
    highs.passModel(program)
    return highs


def run_highs(highs: Any) -> str:
    """Solve it, if it got stuck from scratch, then with presolve: "optimal", "infeasible", or what else came out."""
    import highspy

    known = {highspy.HighsModelStatus.kOptimal: "optimal", highspy.HighsModelStatus.kInfeasible: "infeasible"}
    for attempt in range(3):
        if attempt:
            highs.clearSolver()
        highs.setOptionValue("presolve", "on" if attempt == 2 else "off")
        highs.run()
        if highs.getModelStatus() in known:
            break
    highs.setOptionValue("presolve", "off")
    return known.get(highs.getModelStatus(), str(highs.getModelStatus()))


def clarabel_of(matrix: Any, right: FloatArray, cones: list[Any]) -> Any:
    """A cone program: right − matrix·v in the cones; its cost is given when it is solved."""
    import clarabel

    settings = clarabel.DefaultSettings()
    settings.verbose = settings.presolve_enable = False
    settings.max_threads = 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = TOLERANCE
    used = sparse.csc_matrix(matrix)
    size = used.shape[1]
    nothing = sparse.csc_matrix((size, size))
    return clarabel.DefaultSolver(nothing, np.zeros(size), used, right, cones, settings)
