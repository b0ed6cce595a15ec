"""How the work is cut: small enough to lose and to share, large enough to be worth it, the same whoever does it."""

from __future__ import annotations

from pathlib import Path

from datasets import labels
from overexplain.knowledge.engine import Knowledge
from overexplain.scale import certify
from overexplain.scale.parts import Dataset, File, block_rows
from overexplain.scale.work import Job


def cut(rows: int, proved: bool, part_rows: int | None = None, group: int = 3000) -> list[tuple[int, int]]:
    """(first row, rows) of every part of so many rows with 6 features, in row groups of `group` rows."""
    file = File(Path("x"), "x", tuple(min(group, rows - first) for first in range(0, rows, group)), "", ())
    dataset = Dataset(Path("x"), (file,), 6)
    job = Job(Knowledge(labels()), dataset, Path("x"), Path("y") if proved else None, block_rows(6, proved), "0")
    return [(part.first, part.rows) for part in certify.planned(job, part_rows)]


def test_proved_parts_are_small_enough_to_lose_and_to_share() -> None:
    assert cut(50_000, proved=True) == [(first, min(2048, 50_000 - first)) for first in range(0, 50_000, 2048)]
    assert cut(50_000, proved=True, group=50_000) == cut(50_000, proved=True)


def test_parts_without_proofs_are_enough_for_some_workers() -> None:
    assert cut(50_000, proved=False) == [(0, 50_000)]  # less than a block, which takes a moment
    assert len(cut(2**20, proved=False)) == 16
    assert len(cut(2**21, proved=False)) == 16
    assert len(cut(100 * 2**20, proved=False, group=2**16)) == 100
    assert cut(2**20, proved=False, group=2**20) == [(0, 2**20)]  # nobody decodes a row group sixteen times


def test_part_rows_are_rounded_up_to_whole_blocks() -> None:
    for wanted, got in ((1, 2048), (100, 2048), (2048, 2048), (2049, 4096), (10_000, 10_240)):
        assert {rows for _, rows in cut(50_000, proved=True, part_rows=wanted)[:-1]} == {got}
    assert cut(200_000, proved=False, part_rows=100) == [
        (0, 65_536),
        (65_536, 65_536),
        (131_072, 65_536),
        (196_608, 3392),
    ]
