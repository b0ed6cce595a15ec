"""Whatever goes wrong is one line on stderr and the exit code of its kind."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import get_type_hints

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.models import OptionInfo

from overexplain import errors
from overexplain.cli import app, main
from overexplain.log.querylog import QueryLog

ONE_THREAD = os.environ | {"OPENBLAS_NUM_THREADS": "1"}  # the stacks of its threads are address space, too
HEAVY = {"numpy", "scipy", "sklearn", "pandas", "rich.table", "rich.console"}


def command(*arguments: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "overexplain", *arguments], capture_output=True, text=True, check=False, **options
    )


def failing(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> int:
    """The exit code of a command that raises this."""

    def work() -> None:
        raise error

    monkeypatch.setattr(app, "parse", lambda _: work)
    return main.run([])


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.InvalidInput("x"), 3),
        (errors.DimensionMismatch("x"), 3),
        (errors.NotFinite("x"), 3),
        (errors.ZeroNormal("x"), 3),
        (errors.UnsupportedNorm("x"), 3),
        (errors.UnsupportedModel("x"), 3),
        (PermissionError(13, "Permission denied", "found.json"), 3),
        (errors.InconsistentLog("x"), 4),
        (errors.EndpointFailed("x"), 5),
        (errors.BudgetExhausted("x"), 6),
        (errors.CertificateInvalid("x"), 7),
        (errors.ExtractionFailed("x"), 8),
        (errors.SolverFailed("x"), 8),
        (errors.NoExplanation("x"), 8),
        (errors.BrokenPromise("x", fact="Steepest", excess=1.0), 8),
        (errors.OracleError("x"), 8),
        (errors.OverexplainError("x"), 8),
    ],
)
def test_every_kind_of_error_has_its_exit_code_and_one_line(error, code, monkeypatch, capsys) -> None:
    assert failing(error, monkeypatch) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err == ("error: found.json: Permission denied\n" if isinstance(error, OSError) else "error: x\n")


def test_ctrl_c_is_130_and_one_word(monkeypatch, capsys) -> None:
    assert failing(KeyboardInterrupt(), monkeypatch) == 130
    assert capsys.readouterr() == ("", "interrupted\n")


def test_a_closed_pipe_is_silent(monkeypatch, capsys) -> None:
    monkeypatch.setattr(main, "_discard_stdout", lambda: None)
    assert failing(BrokenPipeError(), monkeypatch) == 141
    assert capsys.readouterr() == ("", "")


def test_a_bug_says_so_and_shows_its_traceback_on_request(monkeypatch, capsys) -> None:
    assert failing(RuntimeError("oops"), monkeypatch) == 8
    _, err = capsys.readouterr()
    assert err.startswith("error: unexpected RuntimeError: oops. This is a bug")
    assert err.count("\n") == 1
    monkeypatch.setenv("OVEREXPLAIN_TRACEBACK", "1")
    with pytest.raises(RuntimeError, match="oops"):
        failing(RuntimeError("oops"), monkeypatch)


def test_a_message_stays_on_one_line_whatever_is_in_it(monkeypatch, capsys) -> None:
    failing(errors.InvalidInput("a\nb\x1b[31mc\td"), monkeypatch)
    assert capsys.readouterr().err == "error: a b [31mc d\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nonsense"], "No such command 'nonsense'; see overexplain --help"),
        (["demo", "--nonsense"], "No such option: --nonsense"),
        (["demo", "--seed", "-1"], "--seed"),
        (["demo", "--seed", "x"], "--seed"),
        (["extract"], "Missing argument 'MODEL'; see overexplain extract --help"),
        (["extract", "m.json"], "say what the service does: --distance l1, --imitate NAME, or --labels-only"),
        (["extract", "m.json", "--distance", "l1", "--strategy", "magic"], "'magic' is not one of"),
        (["extract", "m.json", "--distance", "l1", "--ties", "magic"], "'magic' is not one of"),
        (["extract", "m.json", "--distance", "l1", "--budget", "-1"], "--budget"),
        (["extract", "m.json", "--distance", "l1", "--secret-radius"], "--secret-radius needs --radius"),
        (["extract", "m.json", "--distance", "l1", "--radius", "1"], "--radius and --robustness belong together"),
        (["extract", "m.json", "--distance", "l1", "--robustness", "l2"], "--radius and --robustness belong together"),
    ],
)
def test_wrong_usage_is_2_and_one_line(arguments, says, capsys) -> None:
    assert main.run(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert says in err
    assert err.count("\n") == 1


def options() -> list[tuple[str, str, OptionInfo]]:
    """Every option as it is declared: its command, its parameter, and what Typer is told about it."""
    found = []
    for group in (app.app, app.models, app.logs):
        for command in group.registered_commands:
            for name, hint in get_type_hints(command.callback, include_extras=True).items():
                declared = [entry for entry in getattr(hint, "__metadata__", ()) if isinstance(entry, OptionInfo)]
                found += [(command.callback.__name__, name, option) for option in declared]
    return found


def test_no_option_leaves_its_name_to_typer() -> None:
    # Typer 0.27 made a metavar that equals the parameter's name, such as PROOFS, the name of the option.
    assert len(options()) > 100
    # Inside Annotated its first argument, which elsewhere is the default, is the name.
    assert [(of, name) for of, name, option in options() if option.default is ...] == []


@pytest.mark.parametrize(
    "arguments", [["certify", "a", "b", "--proofs", "c"], ["verify", "a", "b", "--verdicts", "c", "--points", "d"],
                  ["monitor", "a", "--model", "b"], ["probe", "a", "--budget", "1", "--model", "b"]],
)  # fmt: skip
def test_options_have_the_names_that_the_documentation_gives_them(arguments) -> None:
    assert callable(app.parse(arguments))


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"], ["demo", "--help"], ["extract", "-h"]])
def test_help_is_plain_and_80_columns_wide(arguments, capsys) -> None:
    assert main.run(arguments) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith("Usage: overexplain")
    assert out.isascii()
    assert "\x1b" not in out
    assert max(map(len, out.splitlines())) <= 80


def test_help_names_every_command(capsys) -> None:
    main.run(["--help"])
    out = capsys.readouterr().out
    assert "  demo " in out
    assert "  extract " in out
    assert "..." not in out.split("Commands:")[1]


def test_version(capsys) -> None:
    assert main.run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("overexplain ")


def test_help_loads_nothing_heavy_and_is_fast() -> None:
    code = (
        "import sys, time; from overexplain.cli.main import run; code = run(['--help']);"
        f"heavy = {HEAVY!r} & set(sys.modules); print(time.process_time(), *heavy, file=sys.stderr); sys.exit(code)"
    )
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stderr.split()
        for _ in range(3)
    ]
    assert [run[1:] for run in runs] == [[], [], []]
    assert min(float(run[0]) for run in runs) < 0.5  # of the processor: what else the machine does must not matter


def test_python_dash_m_works() -> None:
    done = command("--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Usage: overexplain [OPTIONS] COMMAND")


@pytest.mark.parametrize("arguments", [["--help"], ["extract", "--help"]])
def test_a_full_disk_is_one_line_and_3(arguments) -> None:
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = subprocess.run(
            [sys.executable, "-m", "overexplain", *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (3, "error: the output: No space left on device\n")


def test_a_reader_that_leaves_ends_it_quietly() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "overexplain", "--help"], stdout=writer, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


def test_no_memory_is_said_in_plain_words(monkeypatch, capsys) -> None:
    assert failing(MemoryError("Unable to allocate 305. MiB for an array"), monkeypatch) == 3
    err = capsys.readouterr().err
    assert err.startswith("error: out of memory: ")
    assert err.count("\n") == 1
    assert "bug" not in err


@pytest.mark.parametrize("arguments", [["log", "check"], ["log", "show"]])
def test_a_few_bytes_that_unpack_to_millions_of_rows_are_refused(arguments, tmp_path) -> None:
    rows = 6_000_000
    table = pa.table({"a": pa.array(np.zeros(rows)), "b": pa.array(np.ones(rows)), "label": pa.array(np.ones(rows))})
    pq.write_table(table, tmp_path / "log.parquet", compression="zstd")
    assert (tmp_path / "log.parquet").stat().st_size < 500_000
    limited = "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (10**9, 10**9)); "
    limited += f"from overexplain.cli.main import run; sys.exit(run({[*arguments, 'log.parquet']!r}))"
    done = subprocess.run(
        [sys.executable, "-c", limited], capture_output=True, text=True, check=False, cwd=tmp_path, env=ONE_THREAD
    )
    assert (done.returncode, done.stderr.count("\n")) == (3, 1), done.stderr
    assert "6,000,000 rows or more of 2 features do not fit into memory" in done.stderr


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
@pytest.mark.parametrize(("arguments", "code"), [("log show log.jsonl", 0), ("log check nothing.jsonl", 3)])
def test_closed_output_is_no_bug(arguments, code, closed, tmp_path) -> None:
    """A shell's `>&-`: there is nowhere to write to, and the exit code is what it would be."""
    log = QueryLog(["a"])
    log.add_label([[1.0]], [1])
    log.save(tmp_path / "log.jsonl")
    command = f'"{sys.executable}" -m overexplain {arguments} {closed}'
    done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (code, done.stdout if closed == "2>&-" else "")
    assert "bug" not in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == (1 if code and "2>&-" not in closed else 0)
