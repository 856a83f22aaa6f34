"""Tokens and stop words as the released code of the paper FeatureMaps has them.

Punctuation is what Unicode counts among marks (M), punctuation (P) and symbols (S). Stop words are the 179 English ones
of NLTK's corpus, as it was when the paper was written; they are listed here because the corpus is a download.
"""

from __future__ import annotations

from functools import cache
from itertools import groupby
from unicodedata import category

_NOT = "are could did does had has have is might must need sha should was were wo would"
_OTHERS = """
i me my myself we our ours ourselves you you're you've you'll you'd your yours yourself yourselves he him his
himself she she's her hers herself it it's its itself they them their theirs themselves what which who whom
this that that'll these those am is are was were be been being have has had having do does did doing a an the
and but if or because as until while of at by for with about against between into through during before after
above below to from up down in out on off over under again further then once here there when where why how all
any both each few more most other some such no nor not only own same so than too very s t can will just don
don't should should've now d ll m o re ve y ain ma
"""
STOP_WORDS = frozenset(_OTHERS.split()) | {f"{verb}n{end}" for verb in _NOT.split() for end in ("", "'t")}


@cache
def _punctuates(char: str) -> bool:
    return category(char)[0] in "MPS"


def stripped(part: str) -> list[str]:
    """A part between spaces without its punctuation; nothing where nothing is left.

    >>> stripped("(it's)"), stripped("--")
    (['its'], [])
    """
    token = "".join(char for char in part if not _punctuates(char))
    return [token] if token else []


def runs(part: str) -> list[str]:
    """A part between spaces cut into runs of punctuation and of anything else.

    >>> runs("don't...")
    ['don', "'", 't', '...']
    """
    return ["".join(run) for _, run in groupby(part, _punctuates)]


_ALL = STOP_WORDS | {word.capitalize() for word in STOP_WORDS} | {"".join(stripped(word)) for word in STOP_WORDS}


def is_stop_word(token: str) -> bool:
    """Whether a token is a stop word, as it is written, capitalized, or without its apostrophe.

    >>> is_stop_word("Don't"), is_stop_word("dont"), is_stop_word("Dont"), is_stop_word("THE")
    (True, True, False, False)
    """
    return token in _ALL
