"""skops files: a zip archive with a schema of types and NumPy arrays, read with an empty list of trusted types.

Three checks before an object is made: the archive (`sandbox_zip`, by the parent), every node of the schema against the
short list of what linear models consist of (`check_schema`), and skops' own audit. Of the holes that are known in skops
(CVE-2024-37065, closed in 0.10; CVE-2025-54412 and CVE-2025-54413, closed in 0.12; CVE-2025-54886, closed in 0.13) none
can be reached through that list; 0.16 is required because its audit is the one that was read and tested.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Callable, Iterator
from typing import Any, Final

from overexplain.errors import InvalidInput, UnsupportedModel
from overexplain.models.linear import LinearModel
from overexplain.models.multiclass import MulticlassModel
from overexplain.models.sandbox import LARGEST_FILE, Stored, read_in_child, read_multiclass_in_child
from overexplain.models.sandbox_zip import BadArchive, check_archive, entry_head
from overexplain.models.sniff import read_bounded, shown

OLDEST: Final = (0, 16)
"""The oldest version of skops that is used."""

_ENDINGS = (".json", ".npy")
_LARGEST_SCHEMA: Final = 4 * 2**20

_NODES: Final[dict[str, tuple[str, ...]]] = {
    "JsonNode": ("builtins.str",),
    "DictNode": ("builtins.dict", "collections.OrderedDict"),
    "ListNode": ("builtins.list",),
    "TupleNode": ("builtins.tuple",),
    "SetNode": ("builtins.set",),
    "SliceNode": ("builtins.slice",),
    "NdArrayNode": ("numpy.",),
    "ObjectNode": (
        "sklearn.linear_model.", "sklearn.svm.", "sklearn.discriminant_analysis.", "sklearn.pipeline.", "sklearn.frozen.",
        "sklearn.preprocessing.", "sklearn.compose.", "sklearn.multiclass.", "sklearn.decomposition.", "sklearn.impute.",
        "sklearn.model_selection._classification_threshold.",
    ),
    # Before 1.9, scikit-learn's compiled losses do not name their package.
    "LossNode": ("sklearn._loss.", "_loss.Cy", "sklearn.linear_model._sgd_fast."),
    "TypeNode": ("builtins.str", "builtins.int", "builtins.float", "builtins.bool", "numpy."),
    "RandomStateNode": ("numpy.random.",),
}  # fmt: skip
"""Which nodes may stand for what, by the start of module.class. Functions, methods, operators and partials: none."""

_ADVICE: Final = "open it where it was made and store load_model(model).save('model.json') instead"


def read_skops(path: str | os.PathLike[str], threshold: float | None = None) -> LinearModel:
    """The linear model in a skops file; `threshold` replaces its own cut. Needs the extra `skops`."""
    return stored_skops(path, threshold).model


def stored_multiclass_skops(path: str | os.PathLike[str]) -> Stored[MulticlassModel]:
    """The linear model of several classes (or of two) in a skops file, with what there is to say about the file."""
    return read_multiclass_in_child("skops", _checked(path), path)


def stored_skops(path: str | os.PathLike[str], threshold: float | None = None) -> Stored[LinearModel]:
    """As `read_skops`, with what there is to say about the file."""
    return read_in_child("skops", _checked(path), path, threshold)


def _checked(path: str | os.PathLike[str]) -> bytes:
    """The content of the file, if the archive and its schema are such as linear models have."""
    content = read_bounded(path, LARGEST_FILE)
    try:
        check_archive(content, _ENDINGS)
        check_schema(content)
    except BadArchive as error:
        raise UnsupportedModel(f"{shown(path)}: not a skops file that can be read: {error}") from None
    except InvalidInput as error:
        raise type(error)(f"{shown(path)}: {error}") from None
    return content


def open_skops(content: bytes, raise_fence: Callable[..., None]) -> Any:
    """The fitted object in the bytes of a skops file; only for the child process."""
    try:
        import skops
        import skops.io
    except ImportError:
        raise UnsupportedModel("reading it needs skops: pip install 'overexplain[skops]'") from None
    version = tuple(int(part) for part in skops.__version__.split(".")[:2] if part.isdigit())
    if version < OLDEST:
        wanted = ".".join(map(str, OLDEST))
        raise UnsupportedModel(
            f"skops {skops.__version__} is too old to open files safely; pip install 'skops>={wanted}'"
        )
    import sklearn.pipeline  # noqa: F401  (what is imported now need not be imported behind the fence)

    import overexplain.models.load
    import overexplain.models.sklearn_multiclass  # noqa: F401

    raise_fence(unpickling=False)
    check_schema(content)
    untrusted = skops.io.get_untrusted_types(data=content)
    if untrusted:
        raise UnsupportedModel(f"it holds types that are not trusted ({', '.join(untrusted)[:300]}); {_ADVICE}")
    return skops.io.loads(content, trusted=[])


def check_schema(content: bytes) -> None:
    """Raise unless every node of the schema is one that linear models consist of."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if "schema.json" not in archive.namelist():
            raise UnsupportedModel("it is a zip archive without schema.json, so no skops file")
        if archive.getinfo("schema.json").file_size > _LARGEST_SCHEMA:
            raise UnsupportedModel(f"its schema has more than {_LARGEST_SCHEMA // 2**20} MiB; is it a linear model?")
        try:
            schema = json.loads(entry_head(archive, "schema.json", _LARGEST_SCHEMA))
        except ValueError as error:
            raise InvalidInput(f"its schema.json is not JSON ({error}); copy the file again") from None
        except RecursionError:
            raise InvalidInput("its schema.json is nested too deeply; is it a linear model?") from None
    if not isinstance(schema, dict) or "__loader__" not in schema:
        raise InvalidInput("its schema.json does not describe an object; is it a skops file?")
    for node in _nodes(schema):
        loader, module, name = node.get("__loader__"), node.get("__module__"), node.get("__class__")
        if not isinstance(loader, str) or not isinstance(module, str) or not isinstance(name, str):
            raise InvalidInput("its schema.json has a node whose type is not a text; the file is damaged or made up")
        if f"{module}.{name}".startswith(_NODES.get(loader, ())):
            continue
        what = f"{module}.{name}"[:120]
        raise UnsupportedModel(
            f"its schema has a {loader[:60]} for {what!r}, which no linear model consists of; {_ADVICE}"
        )


def _nodes(value: Any) -> Iterator[dict[str, Any]]:
    """Every object in the JSON that skops could take for a node."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            if "__loader__" in value or "__class__" in value:
                yield value
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
