"""What may stand in a coefficient file, as JSON Schema: the one list of its keys, which the reader uses too."""

from __future__ import annotations

from typing import Any, Final

FORMAT: Final = "overexplain-model"
VERSION: Final = 1

_NAMES: Final = {"type": "array", "items": {"type": "string"}, "uniqueItems": True}
_PROBABILITY: Final = {"type": ["number", "null"], "exclusiveMinimum": 0, "exclusiveMaximum": 1}

COLUMN_ENTRIES: Final[dict[str, dict[str, Any]]] = {
    "name": {"type": "string", "description": "what the data call the column"},
    "categories": {
        "type": ["array", "null"],
        "items": {"type": ["string", "number", "boolean", "null"]},
        "minItems": 1,
        "description": "the values it can have, null for a missing one; left out: the column holds numbers",
    },
    "features": {
        "type": ["array", "null"],
        "items": {"type": "string"},
        "minItems": 1,
        "description": "the feature of the column, or of each category: several may share one. "
        "Left out: name, or name=category",
    },
    "unknown": {
        "enum": ["refuse", "ignore"],
        "default": "refuse",
        "description": "what another value is: an error, or a row in which only unknown_feature is 1, or none",
    },
    "unknown_feature": {"type": ["string", "null"], "description": "the feature that an unknown value switches on"},
    "missing": {"type": ["number", "null"], "description": "the number that stands for a missing one"},
}

ENTRIES: Final[dict[str, dict[str, Any]]] = {
    "format": {"const": FORMAT, "description": "may be left out"},
    "version": {"type": "integer", "minimum": 1, "maximum": VERSION, "description": "of this format; may be left out"},
    "features": {
        **_NAMES,
        "type": ["array", "null"],
        "description": "the names of the features, in the order of the coefficients",
    },
    "coefficients": {
        "description": "of the features, in order, or by name; not all 0",
        "anyOf": [
            {"type": "array", "items": {"type": "number"}, "minItems": 1},
            {"type": "object", "additionalProperties": {"type": "number"}, "minProperties": 1},
        ],
    },
    "intercept": {"type": "number", "description": "the score is coefficients·x + intercept"},
    "link": {
        "enum": ["logistic", "none", None],
        "description": "logistic: P(Yes) = 1/(1 + exp(-score)). Left out: logistic if there is a threshold, else none",
    },
    "threshold": {**_PROBABILITY, "description": "Yes from this probability on: where score ≥ logit(threshold)"},
    "cutoff": {"type": ["number", "null"], "description": "Yes where score ≥ cutoff; left out: 0"},
    "folded_threshold": {
        **_PROBABILITY,
        "description": "Yes where score ≥ 0, and the intercept has had logit(folded_threshold) taken from it",
    },
    "classes": {
        **_NAMES,
        "type": ["array", "null"],
        "minItems": 2,
        "maxItems": 2,
        "description": "the name of No, then the name of Yes",
    },
    "columns": {
        "type": ["array", "null"],
        "items": {
            "type": "object",
            "properties": COLUMN_ENTRIES,
            "required": ["name"],
            "additionalProperties": False,
        },
        "description": "the raw columns that the features are made from; left out: the features are the columns",
    },
}

SCORE_ENTRIES: Final[dict[str, dict[str, Any]]] = {
    "class": {"type": ["string", "null"], "description": "the name of the class; of all classes or of none"},
    "coefficients": {**ENTRIES["coefficients"], "description": "of the features, in order, or by name"},
    "intercept": ENTRIES["intercept"],
}

MULTICLASS_ENTRIES: Final[dict[str, dict[str, Any]]] = {
    **{key: ENTRIES[key] for key in ("format", "version", "features", "columns")},
    "scores": {
        "type": "array",
        "items": {
            "type": "object",
            "properties": SCORE_ENTRIES,
            "required": ["coefficients", "intercept"],
            "additionalProperties": False,
        },
        "minItems": 2,
        "description": "a model of several classes: one score for each, the largest decides, the first if they tie",
    },
}

_ONE_CUT: Final = [
    {"not": {"required": [first, second], "properties": {first: {"type": "number"}, second: {"type": "number"}}}}
    for first, second in (("threshold", "cutoff"), ("threshold", "folded_threshold"), ("cutoff", "folded_threshold"))
]


def model_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a coefficient file, as published in docs/schemas/model.schema.json."""
    only_binary = [key for key in ENTRIES if key not in MULTICLASS_ENTRIES]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A linear model as overexplain reads and writes it",
        "description": "Yes where coefficients·x + intercept ≥ the cut: cutoff, or logit(threshold), or 0. "
        "With scores instead: the class with the largest score",
        "type": "object",
        "properties": {**ENTRIES, "scores": MULTICLASS_ENTRIES["scores"]},
        "oneOf": [
            {"required": ["coefficients", "intercept"], "not": {"required": ["scores"]}},
            {"required": ["scores"], "not": {"anyOf": [{"required": [key]} for key in only_binary]}},
        ],
        "additionalProperties": False,
        "allOf": _ONE_CUT,
    }
