"""The generic way: a request body with places for the point, and JMESPath expressions that say where the answer stands."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from overexplain.errors import InvalidInput
from overexplain.geometry.arrays import FloatArray
from overexplain.oracles.http.endpoint import Endpoint, Verb
from overexplain.oracles.http.readings import Unreadable, changed, label_of, record, shown, vector
from overexplain.oracles.http.secrets import Secrets

VECTOR, RECORD = "{{vector}}", "{{record}}"
Read = Callable[[Any, FloatArray], Any]
Write = Callable[[FloatArray], Any]


def writer(body: Any, endpoint: Endpoint, secrets: Secrets, where: str) -> Write:
    """How a point is put into the body: "{{vector}}" becomes its numbers, "{{record}}" a table by feature name."""
    found = _places(body, where)
    if not found:
        raise InvalidInput(f'{where} has no place for the point: put "{VECTOR}" or "{RECORD}" where it belongs')
    if RECORD in found:
        _features_of(endpoint, f'{where} has "{RECORD}"')

    def write(point: FloatArray) -> Any:
        return _rendered(body, point, endpoint.features, secrets)

    return write


def _places(body: Any, where: str) -> set[str]:
    if isinstance(body, Mapping):
        return {place for name, inner in body.items() for place in _places(inner, f"{where}.{name}")}
    if isinstance(body, list):
        return {place for inner in body for place in _places(inner, where)}
    if isinstance(body, str) and "{{" in body:
        if body not in (VECTOR, RECORD):
            raise InvalidInput(f'{where} is {body!r}: "{VECTOR}" and "{RECORD}" stand alone, without other text')
        return {body}
    if isinstance(body, float) and not math.isfinite(body):
        raise InvalidInput(f"{where} is {body}, which JSON does not have")
    if body is not None and not isinstance(body, str | int | float):
        raise InvalidInput(f"{where} is a {type(body).__name__}, which JSON does not have; write it as a text")
    return set()


def _rendered(body: Any, point: FloatArray, features: Sequence[str] | None, secrets: Secrets) -> Any:
    if isinstance(body, Mapping):
        return {name: _rendered(inner, point, features, secrets) for name, inner in body.items()}
    if isinstance(body, list):
        return [_rendered(inner, point, features, secrets) for inner in body]
    if body == VECTOR:
        return point.tolist()
    if body == RECORD:
        return dict(zip(features or (), point.tolist(), strict=True))
    return secrets.fill(body) if isinstance(body, str) else body


def label_reader(given: Verb, endpoint: Endpoint) -> Read:
    """How a label is read: the `answer` expression, then positive, labels or threshold."""
    answer = _compiled(given.answer, "[classify] answer")
    return lambda reply, _point: label_of(_search(answer, reply, "answer"), endpoint)


def explanation_reader(given: Verb, endpoint: Endpoint) -> Read:
    """How an explanation is read: None where `none` holds, else `answer` in its `form`.

    Nothing at `answer` is no answer unless `none` is true: a mistyped expression must not look like "no counterfactual".
    """
    answer = _compiled(given.answer, "[explain] answer")
    none = _compiled(given.none, "[explain] none") if isinstance(given.none, str) else None
    form = _form_reader(given, endpoint)

    def read(reply: Any, point: FloatArray) -> Any:
        if none is not None and _search(none, reply, "none") not in (None, False, "", [], {}):
            return None
        found = _search(answer, reply, "answer")
        if not _is_nothing(found):
            return form(found, point)
        if given.none is True:
            return None
        if none is not None:
            raise Unreadable("there is no answer where [explain] answer points, and [explain] none does not hold")
        raise Unreadable(
            f"there is nothing where [explain] answer = {given.answer!r} points (if that is how the service says "
            '"no counterfactual", write none = true)'
        )

    return read


def _is_nothing(found: Any) -> bool:
    """True for null, and for a list or table of nothing but nulls: what [a, b] finds where there is neither a nor b."""
    while isinstance(found, list) and len(found) == 1:
        found = found[0]
    if isinstance(found, list | Mapping) and found:
        return all(one is None for one in (found.values() if isinstance(found, Mapping) else found))
    return found is None


def _form_reader(given: Verb, endpoint: Endpoint) -> Read:
    if given.form != "changes" and (given.feature or given.value or given.relative):
        raise InvalidInput('[explain] feature, value and relative belong to form = "changes"')
    if given.form == "record":
        features = _features_of(endpoint, '[explain] form is "record"')
        return lambda found, _point: record(found, features)
    if given.form == "changes":
        feature = _compiled(given.feature or "feature", "[explain] feature")
        value = _compiled(given.value or "value", "[explain] value")

        def read(found: Any, point: FloatArray) -> Any:
            if found is None or found == []:
                return None
            if not isinstance(found, list):
                raise Unreadable(f"a list of changes was expected, it is {shown(found)}")
            pairs = [(_search(feature, one, "feature"), _search(value, one, "value")) for one in found]
            return changed(pairs, point, endpoint.features, given.relative)

        return read
    return lambda found, _point: vector(found)


def _features_of(endpoint: Endpoint, why: str) -> list[str]:
    if endpoint.features is None:
        raise InvalidInput(f'{why}, so the endpoint file needs features = ["…", …], the names in order')
    return endpoint.features


def _compiled(expression: str | None, where: str) -> Any:
    if expression is None:
        raise InvalidInput(f"{where} is missing: a JMESPath expression that says where it stands in the reply")
    try:
        import jmespath
        from jmespath.exceptions import JMESPathError
    except ImportError:
        raise InvalidInput('endpoint files need jmespath: pip install "overexplain[http]"') from None
    try:
        return jmespath.compile(expression)
    except (JMESPathError, RecursionError) as error:
        raise InvalidInput(
            f"{where} = {expression!r} is no JMESPath expression: {' '.join(str(error).split())}"
        ) from None


def _search(expression: Any, value: Any, key: str) -> Any:
    from jmespath.exceptions import JMESPathError

    try:
        return expression.search(value)
    except (JMESPathError, RecursionError, TypeError, ValueError) as error:
        fault = type(error).__name__
    raise Unreadable(f"the expression for {key} cannot be applied to it ({fault})")
