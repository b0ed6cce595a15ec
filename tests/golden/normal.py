"""The one place where what is not the same everywhere is taken out of golden texts; each rule says why."""

from __future__ import annotations

import re

_PACKAGES = "overexplain|python|numpy|scipy|scikit-learn|numba|highspy|clarabel|pyarrow|dask|distributed"
RULES: tuple[tuple[str, str], ...] = (
    # Versions of this package and of what it stands on: a release or an upgrade is no change of output.
    (rf'(?i)\b({_PACKAGES})("?:? "?)v?\d+(?:\.\d+)+\w*', r"\1\2<version>"),
    # Hashes of parts hold the package's version; all others are checked where they are used, by verify and --resume.
    (r"\b[0-9a-f]{64}\b", "<sha256>"),
    # Runs have random names, and digests over rows that hold the time.
    (r"'[0-9a-f]{32}'", "'<run>'"),
    (r"(run +)[0-9a-f]{8}(?=[:\"])", r"\1<run>"),
    (r"X'(?:[0-9A-F]{32}|[0-9A-F]{64})'", "X'<digest>'"),
    # How many labels a diagnosis asks beside the plane, until they differ, is up to the last digits of where it takes it to be.
    (r"(asked +\d+ explanations, )\d+ labels", r"\1<labels> labels"),
    (r'("asked": \{"explanations": \d+, "labels": )\d+', r"\1<labels>"),
    # The clock: the files of inputs/ are dated 2024, all else is now.
    (r"20(?:2[5-9]|[3-9]\d)-\d\d-\d\dT\d\d:\d\d:\d\dZ", "<time>"),
    (r"\b1\.[789]\d{8,}e\+09\b", "<time>"),
    (r"\b1[789]\d{8}\.\d+\b", "<time>"),
)
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+(?:e[+-]?\d+)?|e[+-]?\d+)(?![\w.]*\d)")


def normal(text: str, place: str) -> str:
    """A text as it is compared: `place` is the temporary folder in which a case ran."""
    text = text.replace(place, "<folder>")
    for pattern, instead in RULES:
        text = re.sub(pattern, instead, text)
    return _NUMBER.sub(_number, text)


def _number(found: re.Match[str]) -> str:
    """A number without the digits that the processor decides.

    Matrix products end in other digits on other processors; eight are the same. What is left of a difference that should be 0 is
    0: nothing here is measured in such small units.
    """
    text = found[0]
    value = float(text)
    if value == 0 and "e" not in text:
        return text.removeprefix("-")  # the sign of a zero, too
    digits = re.sub(r"e.*|[-.]", "", text).lstrip("0")
    if abs(value) < 1e-13:
        return "0.0" if len(digits) > 3 else "0"  # as an exact zero is written, in JSON and in texts
    return repr(float(f"{value:.8g}")) if len(digits) > 8 else text


def frozen_error(line: str) -> str:
    """An error line as it is frozen: another engine may find another contradiction, and another proof of it, as good as today's."""
    line = re.sub(r"(fits rows )[\d, ]+( .counted from 0. together: ).*?(\. Either)", r"\1<rows>\2<proof>\3", line)
    line = re.sub(r"the log: rows .* contradict the others", "the log: rows <rows> contradict the others", line)
    # The words of libraries that read the file.
    line = re.sub(r"(damaged \().*(\); copy)", r"\1<why>\2", line)
    return re.sub(r"(no TOML file: ).*", r"\1<why>", line)
