"""Whatever is in a file, it is a run or one line of InvalidInput."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from overexplain.errors import InvalidInput
from overexplain.geometry.mechanism import Mechanism
from overexplain.log.store import file as store_file
from overexplain.log.store import schema as store_schema
from overexplain.log.store.rows import answer_digest, digest, question_hash
from overexplain.log.store.run import Outcome, Run
from strategies import examples

DOORS = (Run.open, Run.read)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with some of everything."""
    path = tmp_path_factory.mktemp("whole") / "run.sqlite"
    with Run.create(
        path, plan={"seed": 7}, dimension=3, features=["a", "b", "c"], mechanism=Mechanism("l1"), budget=50
    ) as run:
        for k in range(12):
            question = run.question("explain" if k % 2 else "classify", np.arange(3.0) + k)
            question.sending()
            if k % 3 == 2:
                question.failed("429", 1e9)
                question.sending()
            if k != 11:
                question.heard(
                    Outcome("explanation", explanation=np.ones(3) * k) if k % 2 else Outcome("label", label=1)
                )
    return path


@pytest.fixture(scope="module")
def with_wal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The two files of a run whose process was killed."""
    folder = tmp_path_factory.mktemp("killed")
    run = Run.create(folder / "made.sqlite", plan={}, dimension=2, budget=50)
    for k in range(5):
        question = run.question("classify", np.full(2, float(k)))
        question.sending()
        question.heard(Outcome("label", label=1))
    for end in ("", "-wal"):
        shutil.copy(folder / f"made.sqlite{end}", folder / f"run.sqlite{end}")
    run.close()
    return folder / "run.sqlite"


def used(path: Path) -> None:
    """Everything that can be read from a file, by both doors."""
    for door in DOORS:
        try:
            with door(path) as run:
                run.log()
                assert run.unanswered is not None
                assert run.spent <= run.budget
                assert run.plan is not None
                if door is Run.open:
                    for k in range(12):
                        assert run.question("explain" if k % 2 else "classify", np.arange(float(run.dimension)) + k).key
        except InvalidInput as error:
            assert "\n" not in str(error)
            assert str(path) in str(error)


def damaged(source: Path, folder: Path, change: Callable[[bytes], bytes], end: str = "") -> Path:
    target = folder / "damaged.sqlite"
    for each in ("", "-wal", "-shm", "-journal"):
        beside, copy = source.with_name(source.name + each), target.with_name(target.name + each)
        copy.unlink(missing_ok=True)
        if beside.exists():
            data = beside.read_bytes()
            copy.write_bytes(change(data) if each == end else data)
    return target


@given(flips=st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 255)), min_size=1, max_size=8))
@examples(60)
def test_flipped_bytes(whole: Path, tmp_path_factory: pytest.TempPathFactory, flips: list[tuple[int, int]]) -> None:
    def change(data: bytes) -> bytes:
        changed = bytearray(data)
        for place, bits in flips:
            changed[place % len(data)] ^= bits
        return bytes(changed)

    used(damaged(whole, whole.parent, change))


def test_flipped_bytes_of_what_is_stored_are_never_taken_for_answers(whole: Path) -> None:
    """Every byte that belongs to a row, one at a time: refused, or the log is what it was."""
    log = Run.read(whole).log()
    data = whole.read_bytes()
    refused = 0
    for place in [k for k in range(len(data)) if data[k]][100::29]:
        path = damaged(whole, whole.parent, lambda d, k=place: d[:k] + bytes([d[k] ^ 4]) + d[k + 1 :])
        try:
            found = Run.read(path).log()
        except InvalidInput:
            refused += 1
        else:
            found._buffers["times"][:] = log._buffers["times"]  # times are not part of what an answer says
            found._buffers["sources"][:] = log._buffers["sources"]
            assert found == log
    assert refused > 50


@given(cut=st.integers(0, 10**6), noise=st.binary(max_size=200))
@examples(25)
def test_cut_files(whole: Path, cut: int, noise: bytes) -> None:
    used(damaged(whole, whole.parent, lambda data: data[: cut % len(data)] + noise))


@given(cut=st.integers(0, 10**6), place=st.integers(0, 10**6), bits=st.integers(0, 255))
@examples(25)
def test_damaged_write_ahead_logs_lose_at_most_their_end(with_wal: Path, cut: int, place: int, bits: int) -> None:
    def change(data: bytes) -> bytes:
        changed = bytearray(data[: max(1, cut % len(data))])
        changed[place % len(changed)] ^= bits
        return bytes(changed)

    path = damaged(with_wal, with_wal.parent, change, "-wal")
    used(path)
    with Run.open(path) as run:  # checksums of its own end it before the damage
        assert run.log().points[:, 0].tolist() == list(range(run.answered))


@given(data=st.binary(max_size=300), as_sqlite=st.booleans())
@examples(25)
def test_any_bytes(whole: Path, data: bytes, as_sqlite: bool) -> None:
    start = b"SQLite format 3\0" if as_sqlite else b""
    used(damaged(whole, whole.parent, lambda _: start + data))


def test_foreign_files_are_named_for_what_they_are(tmp_path: Path) -> None:
    path = tmp_path / "file.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (x)")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    for door in DOORS:
        with pytest.raises(InvalidInput, match="another program"):
            door(path)
    assert path.read_bytes() == before
    path.write_text("age,income\n1,2\n" * 100)
    for door in DOORS:
        with pytest.raises(InvalidInput, match="no SQLite file"):
            door(path)


def test_a_run_that_was_never_finished(tmp_path: Path) -> None:
    """Killed while it was made: no bytes yet, or a file without tables."""
    path = tmp_path / "file.sqlite"
    path.touch()
    for door in DOORS:
        with pytest.raises(InvalidInput, match="nothing was asked yet; remove it"):
            door(path)
    path.unlink()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("BEGIN")
    for statement in store_schema.SCHEMA:
        connection.execute(statement)
    half = tmp_path / "half.sqlite"
    for end in ("", "-wal"):
        shutil.copy(f"{path}{end}", f"{half}{end}")
    connection.close()
    for door in DOORS:
        with pytest.raises(InvalidInput, match="nothing was asked yet; remove it"):
            door(half)


def forged(source: Path, *statements: str | tuple[str, tuple[object, ...]], defences: bool = False) -> Path:
    """The run after SQL that its triggers and checks would not allow."""
    path = damaged(source, source.parent, lambda data: data)
    connection = sqlite3.connect(path, isolation_level=None)
    for pragma in ("ignore_check_constraints = ON", "writable_schema = ON", "synchronous = OFF"):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute("BEGIN")
    kept = connection.execute("SELECT * FROM sqlite_schema WHERE type = 'trigger'").fetchall()
    if not defences:
        for row in kept:
            connection.execute(f"DROP TRIGGER {row[1]}")
    for statement in statements:
        connection.execute(*([statement] if isinstance(statement, str) else statement))
    if not defences:
        for row in kept:
            with contextlib.suppress(sqlite3.OperationalError):  # for a table that is gone
                connection.execute(row[4])
    connection.execute("COMMIT")
    connection.close()
    return path


def test_a_forged_file_that_is_right_is_read(whole: Path) -> None:
    """What the next tests do differs from this only in the one thing that is wrong."""
    assert Run.read(forged(whole, "UPDATE intent SET time = 5.0")).log().times.tolist() == [5.0] * 11


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("PRAGMA user_version = 2", "format 2"),
        ("PRAGMA user_version = 0", "tables"),
        ("PRAGMA application_id = 5", "another program"),
        ("DROP TABLE failure", "tables"),
        ("CREATE TABLE extra (x)", "tables"),
        ("CREATE VIEW extra AS SELECT * FROM answer", "tables"),
        ("CREATE TRIGGER extra AFTER INSERT ON intent BEGIN SELECT 1; END", "tables"),
        ("CREATE INDEX extra ON answer (kind)", "tables"),
        (
            "UPDATE sqlite_schema SET type = 'view', sql = 'CREATE VIEW run AS SELECT 1' WHERE name = 'run'",
            "tables|damaged",
        ),
        ("DELETE FROM run", "run are missing"),
        ("DELETE FROM allowed", "allowed are missing"),
        ("DELETE FROM intent WHERE number = 3", "refers|missing"),
        ("DELETE FROM answer WHERE number = 3", "answer are missing"),
        ("UPDATE allowed SET budget = 1000000", "not what was stored"),
        ("UPDATE run SET idempotent = 1", "not what was stored"),
        ("UPDATE run SET plan = '{}'", "not what was stored"),
        ("UPDATE answer SET label = -1 WHERE label = 1", "not what was stored"),
        ("UPDATE answer SET detail = 'x'", "not what was stored"),
        ("UPDATE answer SET explanation = zeroblob(16) WHERE explanation IS NOT NULL", "not 3 numbers"),
        ("UPDATE answer SET explanation = zeroblob(24) WHERE explanation IS NOT NULL", "not what was stored"),
        ("UPDATE question SET point = zeroblob(24) WHERE number = 12", "not what was stored"),
        ("UPDATE intent SET question = 1 WHERE number = 5", "not what was stored"),
        ("UPDATE intent SET time = 9e999", "infinite"),
        ("UPDATE failure SET until = 9e999", "infinite"),
        ("UPDATE answer SET kind = 'perhaps'", "not what was stored"),
        ("UPDATE answer SET detail = cast(x'ff00' AS TEXT)", "damaged"),
    ],
)
def test_forged_rows(whole: Path, statement: str, message: str) -> None:
    path = forged(whole, statement)
    with pytest.raises(InvalidInput, match=message) as caught:
        Run.read(path)
    assert "\n" not in str(caught.value)
    used(path)


@pytest.mark.parametrize(
    "values",
    [
        {"plan": "[1]"},
        {"plan": '{"x": NaN}'},
        {"plan": "{" * 5},
        {"plan": '{"a":' * 20_000 + "1" + "}" * 20_000},
        {"plan": "[" + "9" * 5000 + "]"},
        {"dimension": 2**40},
        {"features": '["a"]'},
        {"features": "7"},
        {"mechanism": '{"distance": "l77"}'},
        {"mechanism": '{"distance": {"norm": "weighted", "weights": [1, 2]}}'},
        {"mechanism": "3"},
    ],
)
def test_forged_headers_with_a_digest_that_fits(whole: Path, values: dict[str, object]) -> None:
    connection = sqlite3.connect(whole)
    names = [row[1] for row in connection.execute("PRAGMA table_info(run)")]
    row = dict(zip(names, connection.execute("SELECT * FROM run").fetchone(), strict=True)) | values
    connection.close()
    row["digest"] = digest(*list(row.values())[:-1])
    path = forged(whole, "DELETE FROM run", ("INSERT INTO run VALUES (?,?,?,?,?,?,?,?,?)", tuple(row.values())))
    for door in DOORS:
        with pytest.raises(InvalidInput) as caught:
            door(path)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("verb", "stored"),
    [
        ("score", ("label", 1, None, "")),
        ("explain", ("label", 1, None, "")),
        ("classify", ("label", 7, None, "")),
        ("classify", ("refused", 1, None, "")),
        ("explain", ("none", None, bytes(24), "")),
        ("explain", ("perhaps", None, None, "")),
    ],
)
def test_answers_that_cannot_be_with_digests_that_fit(whole: Path, verb: str, stored: tuple[object, ...]) -> None:
    point = np.arange(3.0).tobytes()
    identity = question_hash(verb, point, 9)
    path = forged(
        whole,
        ("INSERT INTO question VALUES (13, ?, ?, 9, ?)", (identity, verb, point)),
        "INSERT INTO intent VALUES (17, 13, 1.0)",
        ("INSERT INTO answer VALUES (12, 17, ?, ?, ?, ?, 1.0, ?)", (*stored, answer_digest(identity, 12, 17, stored))),
        defences=True,
    )
    with pytest.raises(InvalidInput, match="damaged"):
        Run.read(path)
    with pytest.raises(InvalidInput, match="CHECK|no answer to"), Run.open(path) as run:
        run.log()


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("question", "point", "'text'"),
        ("question", "verb", "x'00'"),
        ("question", "occurrence", "'many'"),
        ("answer", "explanation", "7"),
        ("answer", "detail", "x'00'"),
        ("answer", "label", "'yes'"),
        ("intent", "time", "'noon'"),
        ("intent", "question", "1.5"),
        ("allowed", "budget", "9e300"),
        ("run", "plan", "x'7b7d'"),
        ("run", "dimension", "'three'"),
        ("failure", "until", "'later'"),
    ],
)
def test_values_of_another_type(whole: Path, table: str, column: str, value: str) -> None:
    """As they would be if the table had not been STRICT when they were written."""
    loose = f"UPDATE sqlite_schema SET sql = replace(sql, ') STRICT', ')') WHERE name = '{table}'"
    path = forged(whole, loose)
    forge = sqlite3.connect(path, isolation_level=None)
    for pragma in ("ignore_check_constraints = ON", "writable_schema = ON", "synchronous = OFF"):
        forge.execute(f"PRAGMA {pragma}")
    forge.execute("BEGIN")
    triggers = forge.execute(f"SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = '{table}'")
    kept = triggers.fetchall()
    for name, _ in kept:
        forge.execute(f"DROP TRIGGER {name}")
    forge.execute(f"UPDATE {table} SET {column} = {value}")
    for _, text in kept:
        forge.execute(text)
    forge.execute(f"UPDATE sqlite_schema SET sql = sql || ' STRICT' WHERE name = '{table}'")
    forge.execute("COMMIT")
    forge.close()
    for door in DOORS:
        with pytest.raises(InvalidInput, match="damaged"):
            door(path)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_numbers_that_are_none_with_digests_that_fit(whole: Path, wrong: float) -> None:
    point = np.array([wrong, 0.0, 0.0]).tobytes()
    identity = question_hash("explain", np.arange(3.0).tobytes(), 9)
    stored = ("explanation", None, point, "")
    ask = "INSERT INTO question VALUES (13, ?, 'explain', 9, ?)"
    send = "INSERT INTO intent VALUES (17, 13, 1.0)"
    answer = "INSERT INTO answer VALUES (12, 17, ?, ?, ?, ?, 1.0, ?)"
    path = forged(
        whole,
        (ask, (identity, np.arange(3.0).tobytes())),
        send,
        (answer, (*stored, answer_digest(identity, 12, 17, stored))),
        defences=True,
    )
    with pytest.raises(InvalidInput, match="NaN or infinite"):
        Run.read(path)
    identity = question_hash("explain", point, 0)
    path = forged(whole, (ask.replace("9", "0"), (identity, point)), send, defences=True)
    with pytest.raises(InvalidInput, match="stored point"):
        Run.read(path)


def test_a_value_that_is_too_large_is_not_read(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = forged(whole, "UPDATE question SET point = zeroblob(8000000) WHERE number = 1")
    monkeypatch.setattr(store_file, "LARGEST", 10_000)
    for door in DOORS:
        with pytest.raises(InvalidInput, match="damaged: question 1"):
            door(path)


def test_a_huge_file_that_says_nothing_takes_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "huge.sqlite"
    with path.open("wb") as file:
        file.write(b"SQLite format 3\0")
        file.truncate(2**40)
    used(path)
