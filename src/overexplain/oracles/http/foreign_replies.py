"""The counterfactual in replies of alibi (through MLServer) and of DiCE."""

from __future__ import annotations

from typing import Any

import numpy as np

from overexplain.geometry.arrays import FloatArray
from overexplain.oracles.http.endpoint import Endpoint
from overexplain.oracles.http.readings import Unreadable, entry, number, read_json, record, shown, single, vector


def alibi_counterfactual(reply: Any, _endpoint: Endpoint) -> FloatArray | None:
    """The row data.cf.X of an alibi explanation, which MLServer gives as a JSON text in the output "explanation"."""
    outputs = entry(reply, "outputs")
    if not isinstance(outputs, list):
        raise Unreadable("outputs is no list")
    named = [one for one in outputs if isinstance(one, dict) and one.get("name") == "explanation"]
    text = single(entry(single(named or outputs, "outputs"), "data"), "the explanation's data")
    if not isinstance(text, str):
        raise Unreadable(f"the explanation must be a JSON text, it is {shown(text)}")
    found = entry(read_json(text), "data", "cf")
    if found is None:
        return None
    rows = entry(found, "X")
    if isinstance(rows, list) and rows and all(isinstance(row, list) for row in rows):
        rows = rows[0]  # several: the first is the best
    return vector(rows)


def dice_counterfactual(reply: Any, endpoint: Endpoint) -> FloatArray | None:
    """The first row of cfs_list in DiCE's JSON (version 2), by feature name, without the outcome."""
    explained = read_json(reply) if isinstance(reply, str) else reply
    found = entry(explained, "cfs_list")
    if found is None or found == []:
        return None
    rows = single(found, "cfs_list")
    if rows is None or rows == []:
        return None
    row = entry(rows, 0)
    if not isinstance(row, list):
        raise Unreadable(f"cfs_list[0][0] must be a row, it is {shown(row)}")
    names = _columns(explained, len(row))
    values = dict(zip(names, map(_plain, row), strict=True))
    if endpoint.features is not None:
        return record(values, endpoint.features)
    own = entry(explained, "feature_names")
    return np.array([number(values[name], repr(name)) for name in own if name in values], dtype=np.float64)


def _columns(explained: Any, count: int) -> list[str]:
    """The names of a row's entries: DiCE puts the outcome last."""
    for key in ("feature_names_including_target", "feature_names"):
        names = explained.get(key)
        if isinstance(names, list) and all(isinstance(name, str) for name in names) and len(set(names)) == len(names):
            if len(names) == count:
                return names
            if key == "feature_names" and len(names) == count - 1:
                return [*names, ""]
    raise Unreadable(f"feature_names does not fit a row of {count} entries in cfs_list")


def _plain(value: Any) -> Any:
    """DiCE writes the numbers of some columns as texts."""
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    return value
