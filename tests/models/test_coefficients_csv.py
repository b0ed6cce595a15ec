"""Tables of coefficients as people export them, and what is said about every mistake in one."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from overexplain.errors import InvalidInput, NotFinite, ZeroNormal
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.models.coefficients_csv import INTERCEPTS, read_coefficient_table
from overexplain.models.columns import Column
from overexplain.models.linear import LinearModel, logit
from overexplain.models.load import load_model

EXPECTED = LinearModel(Hyperplane([0.5, -2e-3], 1.25), ("age", "net income"))


def write(folder: Path, text: str | bytes, name: str = "scores.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize(
    "text",
    [
        "feature,coefficient\nage,0.5\nnet income,-2e-3\nintercept,-1.25\n",
        "Name;Coef\nage;0.5\nnet income;-2e-3\nIntercept;-1.25\n",
        "Variable\tWeight\r\n\r\n(Intercept)\t-1.25\r\nage\t0.5\r\nnet income\t-0.002\r\n",
        "age,0.5\nnet income,-2e-3\nconst,-1.25",
        '\ufeff"variable","estimate"\n"age","0.5"\n"net income","-2e-3"\n"_cons","-1.25"\n',
        ",0\nage,0.5\nnet income,-2e-3\nconst,-1.25\n",
        '"","Estimate","Std. Error","z value","Pr(>|z|)"\n"(Intercept)",-1.25,0.2,-5,1e-6\n"age",0.5,1,2,3\n'
        '"net income",-0.002,0.1,0.1,0.5\n',
        "what,it weighs\nage, 0.5 \n net income ,-2e-3\nINTERCEPT,-1.25\n",
        "p,coefficient,feature\n0.1,0.5,age\n0.2,-2e-3,net income\n0.3,-1.25,bias\n",
    ],
)
def test_tables_as_they_are_exported(text: str, tmp_path: Path) -> None:
    path = write(tmp_path, text)
    assert read_coefficient_table(path) == EXPECTED
    assert load_model(path) == EXPECTED
    assert load_model(path).source == "coefficient table"


def test_series_and_frames_of_pandas_and_statsmodels(tmp_path: Path) -> None:
    series = pd.Series([-1.25, 0.5, -2e-3], index=["const", "age", "net income"])
    series.to_csv(tmp_path / "series.csv")
    series.rename("coef").to_frame().assign(p=0.5).to_csv(tmp_path / "frame.csv", index_label="feature")
    assert load_model(tmp_path / "series.csv") == load_model(tmp_path / "frame.csv") == EXPECTED


def test_a_threshold_says_that_the_score_is_the_log_odds(tmp_path: Path) -> None:
    model = load_model(write(tmp_path, "age,0.5\nintercept,-1.25"), threshold=0.8)
    assert (model.threshold, model.link) == (0.8, "logistic")
    assert model.hyperplane.offset == pytest.approx(1.25 + logit(0.8))


def test_scorecards_with_categories(tmp_path: Path) -> None:
    text = "characteristic,attribute,points\nbase,,3\nhome,rent,-1\nhome,own,2\nyears,,0.5\nconstant,,-1\n"
    model = load_model(write(tmp_path, text))
    assert model.columns == (Column("base"), Column("home", ("rent", "own")), Column("years"))
    assert model.features == ("base", "home=rent", "home=own", "years")
    np.testing.assert_array_equal(model.encode({"home": ["own"], "base": [1], "years": [7]}), [[1.0, 0.0, 1.0, 7.0]])
    model.save(tmp_path / "model.json")
    assert load_model(tmp_path / "model.json") == model


@pytest.mark.parametrize("name", [*INTERCEPTS, "INTERCEPT", "Const"])
def test_every_spelling_of_the_intercept(name: str, tmp_path: Path) -> None:
    assert read_coefficient_table(write(tmp_path, f"a,1\n{name},2\n")).hyperplane.offset == -2


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("", InvalidInput, "the file is empty"),
        ("\n \n", InvalidInput, "the file is empty"),
        ("age\n", InvalidInput, "line 1: one column"),
        ("age,1\nb,2\n", InvalidInput, "no row for the intercept; add one"),
        ("intercept,1\n", InvalidInput, "only the intercept is there"),
        ("a,0\nb,0\nintercept,1\n", ZeroNormal, "every coefficient is zero"),
        ("a,1\nb,2\na,3\nintercept,1\n", InvalidInput, "line 3: 'a' is there twice, after line 1"),
        ("a,1\nconst,2\n(Intercept),3\n", InvalidInput, r"line 3: '\(Intercept\)' is a second intercept, after line 2"),
        ("a,1\nb\nconst,1\n", InvalidInput, "line 2: 1 columns where the first line has 2"),
        ("a,1\nb,2,3\nconst,1\n", InvalidInput, "line 2: 3 columns where"),
        ("a,1\nb,\nconst,1\n", InvalidInput, "line 2: the coefficient of 'b' is missing"),
        ("a,1\n,2\nconst,1\n", InvalidInput, "line 2: the name of the feature is missing"),
        ("a,1\nb,two\nconst,1\n", InvalidInput, "line 2: the coefficient of 'b' is 'two', which is not a number"),
        ("a,1\nb,1_0\nconst,1\n", InvalidInput, "line 2: the coefficient of 'b' is '1_0', which is not"),
        ("a;1\nb;0,5\nconst;1\n", InvalidInput, "line 2: .*'0,5'.* write a point, not a comma"),
        ("a,1\nb,nan\nconst,1\n", NotFinite, "line 2: the coefficient of 'b' is nan"),
        ("a,1\nconst,-1e999\n", NotFinite, "line 2: the coefficient of 'const' is -1e999"),
        ("a,1,2\nb,2,3\nconst,1,0\n", InvalidInput, "line 1: 3 columns without names; add a first line"),
        ("x,y,z\nb,2,3\n", InvalidInput, "no column is called feature, features, name.*'x', 'y', 'z'"),
        ("feature,y,z\nb,2,3\n", InvalidInput, "no column is called coefficient"),
        ('a,1\n"b,2\nconst,1\n', InvalidInput, "line 2: not CSV"),
        ("feature,level,coef\na,,1\na,x,2\nconst,,0\n", InvalidInput, "line 3: 'a' has a coefficient with and one"),
        ("feature,level,coef\na,x,1\na,x,2\nconst,,0\n", InvalidInput, "line 3: 'a=x' is there twice"),
        (b"a,1\nconst\xff,2\n", InvalidInput, "not UTF-8 text .byte 9."),
        (b"a,1\0\nconst,2\n", InvalidInput, "NUL"),
        ("a," + "1" * 200_000 + "\nconst,1\n", InvalidInput, "line 1: not CSV: field larger|too large|finite"),
    ],
)
def test_every_mistake_is_named_with_its_line(
    text: str | bytes, error: type[Exception], message: str, tmp_path: Path
) -> None:
    path = write(tmp_path, text)
    with pytest.raises(InvalidInput, match=message) as caught:
        read_coefficient_table(path)
    assert type(caught.value) is error
    assert str(caught.value).startswith(f"{path}: ")


@given(
    st.lists(
        st.tuples(st.text(st.characters(exclude_categories=["Cs", "Cc", "Z"]), min_size=1), st.floats(-1e9, 1e9)),
        min_size=1, unique_by=lambda pair: pair[0],
    ),
    st.floats(-1e9, 1e9),
)  # fmt: skip
def test_what_pandas_writes_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, float]], intercept: float
) -> None:
    pairs = [(name, value) for name, value in pairs if name.lower() not in INTERCEPTS]
    if not any(value for _, value in pairs):
        return
    frame = pd.DataFrame([*pairs, ("intercept", intercept)], columns=["feature", "coefficient"])
    text = io.StringIO()
    frame.to_csv(text, index=False)
    path = tmp_path_factory.getbasetemp() / "written.csv"
    path.write_text(text.getvalue(), encoding="utf-8", newline="")
    model: Any = read_coefficient_table(path)
    assert model == LinearModel(
        Hyperplane.from_intercept([v for _, v in pairs], intercept), tuple(name for name, _ in pairs)
    )
