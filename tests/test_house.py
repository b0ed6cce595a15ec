"""How hard the package is to learn, as a ceiling: rings of imports, names at the root and the longest file may shrink, not grow."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import overexplain as ox

ROOT = Path(ox.__file__).parent
RINGS = {"auditing": [2], "cli": [26, 4], "knowledge": [11, 4], "log": [19], "models": [2, 2], "report": [2]}
"""For every folder, how many of its modules import each other in a ring, imports inside functions counted; largest first."""
ROOT_NAMES = 102
LONGEST_FILE = 490


def _imports() -> dict[str, set[str]]:
    """Which modules of its own folder every module imports, wherever in the file."""
    files = {_name(path): path for path in sorted(ROOT.rglob("*.py"))}
    found: dict[str, set[str]] = {}
    for name, path in files.items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        targets = {_known(target, files) for target in _imported(tree)}
        found[name] = {target for target in targets - {"", name} if _folder(target) == _folder(name)}
    return found


def _name(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _folder(name: str) -> str:
    return ".".join(name.split(".")[1:2])


def _imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _known(target: str, files: dict[str, Path]) -> str:
    """The module that an imported name is, or is in; "" for those of others."""
    while target and target not in files:
        target = target.rpartition(".")[0]
    return target


def _rings(imports: dict[str, set[str]]) -> list[set[str]]:
    """Sets of modules each of which reaches all others."""
    reached = {name: _reached(name, imports) for name in imports}
    rings = {frozenset(other for other in reached[name] if name in reached[other]) for name in imports}
    return [set(ring) for ring in rings if ring]


def _reached(name: str, imports: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    ahead = list(imports[name])
    while ahead:
        module = ahead.pop()
        if module not in seen:
            seen.add(module)
            ahead += imports[module]
    return seen


def test_imports_inside_a_folder_make_no_more_rings_than_before() -> None:
    rings = sorted(_rings(_imports()), key=len, reverse=True)
    for folder in {_folder(name) for ring in rings for name in ring}:
        inside = [ring for ring in rings if _folder(min(ring)) == folder]
        most = RINGS.get(folder, [])
        listed = "\n".join(f"{len(ring)}: {', '.join(sorted(ring))}" for ring in inside)
        assert len(inside) <= len(most), f"a new ring of imports in {folder}:\n{listed}"
        assert all(len(ring) <= size for ring, size in zip(inside, most, strict=False)), f"a ring grew:\n{listed}"


def test_a_ring_is_found() -> None:
    assert _rings({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == [{"b", "c"}]


def test_the_root_has_no_more_names_than_before() -> None:
    assert len(ox.__all__) <= ROOT_NAMES


def test_no_file_is_longer_than_the_longest_was() -> None:
    lines = {str(path): len(path.read_text(encoding="utf-8").splitlines()) for path in ROOT.rglob("*.py")}
    assert max(lines.values()) <= LONGEST_FILE, max(lines, key=lines.__getitem__)
