"""The published schema is the one in the code, and says of every file what the reader says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from overexplain.errors import InvalidInput
from overexplain.models.coefficients import from_dict, to_entries
from overexplain.models.schema import COLUMN_ENTRIES, ENTRIES, model_schema

PUBLISHED = Path(__file__).parents[2] / "docs/schemas/model.schema.json"
BASE: dict[str, Any] = {"coefficients": [0.3, -1.5], "intercept": -1.2}
COLUMNS = [
    {"name": "age", "missing": 3},
    {"name": "sex", "categories": ["f", None], "features": ["s", "s"], "unknown": "ignore", "unknown_feature": "s"},
]
GOOD: list[dict[str, Any]] = [
    BASE,
    BASE | {"format": "overexplain-model", "version": 1, "features": ["a", "b"], "classes": ["no", "yes"]},
    BASE | {"threshold": 0.3, "link": "logistic"},
    BASE | {"cutoff": 620, "link": "none"},
    BASE | {"folded_threshold": 0.3},
    BASE | {"threshold": None, "cutoff": None, "folded_threshold": None, "link": None, "classes": None},
    {"coefficients": {"age": 1, "income": 2}, "intercept": 0},
    BASE | {"features": ["age", "s"], "columns": COLUMNS},
]
BAD: list[Any] = [
    [],
    "text",
    {"coefficients": [1]},
    {"intercept": 1},
    BASE | {"coef": 1},
    BASE | {"format": "other"},
    BASE | {"version": 0},
    BASE | {"version": 2},
    BASE | {"coefficients": []},
    BASE | {"coefficients": ["1", 2]},
    BASE | {"coefficients": {"a": True}},
    BASE | {"intercept": "0"},
    BASE | {"intercept": None},
    BASE | {"link": "probit"},
    BASE | {"threshold": 0},
    BASE | {"threshold": 1},
    BASE | {"folded_threshold": 1.5},
    BASE | {"threshold": 0.5, "cutoff": 0},
    BASE | {"threshold": 0.5, "folded_threshold": 0.5},
    BASE | {"cutoff": 1, "folded_threshold": 0.5},
    BASE | {"features": ["a", "a"]},
    BASE | {"features": "ab"},
    BASE | {"features": [1, 2]},
    BASE | {"classes": ["a"]},
    BASE | {"classes": ["a", "a"]},
    BASE | {"features": ["a", "b"], "columns": 3},
    BASE | {"features": ["a", "b"], "columns": [{"title": "a"}]},
    BASE | {"features": ["a", "b"], "columns": [{"name": "a"}, {"name": "b", "categories": []}]},
    BASE | {"features": ["a", "b"], "columns": [{"name": "a"}, {"name": "b", "unknown": "guess"}]},
    BASE | {"features": ["a", "b"], "columns": [{"name": "a"}, {"name": "b", "missing": "3"}]},
]


@pytest.fixture(scope="module")
def validator() -> Any:
    schema = json.loads(PUBLISHED.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_the_published_schema_is_the_one_in_the_code() -> None:
    text = json.dumps(model_schema(), indent=2, ensure_ascii=False) + "\n"
    assert PUBLISHED.read_text(encoding="utf-8") == text


def test_every_entry_is_described() -> None:
    assert all(entry["description"] for entry in (*ENTRIES.values(), *COLUMN_ENTRIES.values()))


@pytest.mark.parametrize("entries", GOOD)
def test_what_the_reader_takes_the_schema_takes(entries: dict[str, Any], validator: Any) -> None:
    validator.validate(entries)
    written = to_entries(from_dict(entries))
    validator.validate(json.loads(json.dumps(written)))


@pytest.mark.parametrize("entries", BAD)
def test_what_the_schema_refuses_the_reader_refuses(entries: Any, validator: Any) -> None:
    assert not validator.is_valid(entries)
    with pytest.raises(InvalidInput):
        from_dict(entries)
