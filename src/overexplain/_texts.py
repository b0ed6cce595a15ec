"""Texts from outside: can they be written at all?"""

from __future__ import annotations


def is_unicode(text: str) -> bool:
    r"""False if half of a surrogate pair is in it, as "\ud800" in JSON gives: nothing can print it, hash it or save it.

    >>> is_unicode("Größe"), is_unicode("\ud800")
    (True, False)
    """
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)
