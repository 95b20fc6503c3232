"""Takes names out of the texts of a recorded attempt: its reason, its answer and its request.

A text may hold a name that has no pseudonym, and gets none: of a certificate, a claim, a path.

Rules:

- A name that the request holds becomes what stands for it.
- What a text quotes was chosen by a caller, so it goes out, unless it is a pseudonym. It may be
  half a name, because messages cut what they quote.
- A word that the setting covers goes out, also without `User:`. Only patterns with a sign in their
  text find such words, as `@` in `User:*@example.com`. To `User:*` every word is a name.

So whoever writes the reason of an attempt quotes what a caller chose (`!r`).
"""

import re
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import quote, unquote

from metadata.people import USER
from metadata.pseudonyms import UNKNOWN, is_pseudonym

_QUOTED: Final = re.compile(
    r"(?<!\w)(?:'(?:[^'\\]|\\.)*(?:'|$)|\"(?:[^\"\\]|\\.)*(?:\"|$))", re.DOTALL
)
"""From a quotation mark that is no apostrophe, as `repr` writes it, or to the end of a cut text."""
_WORD: Final = re.compile(r"[^\s/,;:()'\"<>=&?`]+")
_PRINCIPAL: Final = re.compile(r"User:[^\s,;()'\"]+")
_OF_PATH: Final = re.compile(r"(?<=/users/)[^/\s]+")
_LEFT_OUT: Final = "…"
_END: Final = ".:"


def without_names(
    text: str,
    known: Mapping[str, str],
    recorded: Callable[[str], str],
    covers_word: Callable[[str], bool],
) -> str:
    """Return a text in which nobody has a name.

    `known`: what stands for the names of the request, without `User:`. `recorded` returns what
    stands for a principal. `covers_word`: whether a word by itself is surely a name that is hidden.
    """
    if known:
        text = _replaced(text, known)
    text = _QUOTED.sub(_unquoted, text)
    text = _PRINCIPAL.sub(lambda found: _stands(found[0], "", recorded), text)
    text = _OF_PATH.sub(lambda found: _stands(unquote(found[0]), USER, recorded, found[0]), text)
    return _WORD.sub(lambda found: _without(found[0], covers_word), text)


def _replaced(text: str, known: Mapping[str, str]) -> str:
    """Replace the names of the request, the longest first, also as a path writes them."""
    spelled = {quote(name, safe=""): stands for name, stands in known.items()} | dict(known)
    longest_first = sorted(spelled, key=len, reverse=True)
    names = "|".join(map(re.escape, longest_first))
    return re.sub(rf"(?<!\w)(?:{names})(?!\w)", lambda found: spelled[found[0]], text)


def _unquoted(found: re.Match[str]) -> str:
    """Return a quotation without what it quotes, unless that is a pseudonym."""
    mark, quoted = found[0][0], found[0][1:-1]
    stays = is_pseudonym(USER + quoted.removeprefix(USER))
    return found[0] if stays else f"{mark}{_LEFT_OUT}{mark}"


def _stands(
    said: str, prefix: str, recorded: Callable[[str], str], written: str | None = None
) -> str:
    """Return what stands for a name that a text says. `written`: how it stands there."""
    name = said.rstrip(_END)
    stands = recorded(prefix + name)
    if stands == prefix + name:
        return said if written is None else written
    return stands.removeprefix(prefix) + said[len(name) :]


def _without(word: str, covers_word: Callable[[str], bool]) -> str:
    name = word.rstrip(_END)
    return UNKNOWN.removeprefix(USER) + word[len(name) :] if covers_word(unquote(name)) else word
