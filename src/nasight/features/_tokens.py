"""Texts as numbers: tokenized once into distinct pieces, from which three tokenizers read their tokens.

A text falls into pieces at white space. Each tokenizer works on the distinct pieces only, and the tokens of a text
are gathered from there, which is what makes a slow tokenizer affordable.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nasight.errors import RequestError
from nasight.features._released_tokens import is_stop_word, runs, stripped

TOKENS = ("spaces", "punctuation", "nltk")
END = "\n"
"""Marks, in a piece, where its text begins or ends: NLTK treats quotes and periods differently there."""
_WORD = re.compile(r"\w")
_RUNS = re.compile(r"[^\W_]+|[\W_]+")
_LAST_WORD = re.compile(r"[A-Za-z]+\.")
_BETWEEN = "x\ue000x"
_TOGETHER = 500


@dataclass(frozen=True, slots=True)
class Ragged:
    """Rows of different lengths: row i is ids[starts[i]:starts[i + 1]]."""

    ids: NDArray[np.int32]
    starts: NDArray[np.int64]

    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.starts)


def spans(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """The positions start, start + 1, ..., start + length - 1 of every span, one after the other."""
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(int(lengths.sum()))


class Vocabulary(NamedTuple):
    """What decides about the tokens of a text."""

    tokens: str
    stop_words: bool
    lowercase: bool
    published: bool = False
    """Whether punctuation and stop words are those of the released code of the paper FeatureMaps."""


class Lexicon:
    """Numbers for pieces and for tokens. It grows with what it reads; a number once given stays."""

    def __init__(self) -> None:
        self._pieces: dict[str, int] = {}
        self._tokens: dict[str, int] = {}
        self._tables: dict[tuple[str, bool], tuple[NDArray[np.int32], NDArray[np.int64]]] = {}
        self._lower = np.empty(0, np.int32)
        self._stop = {False: np.empty(0, bool), True: np.empty(0, bool)}
        self._bytes: tuple[int, NDArray[np.uint8], NDArray[np.int64]] = (
            0,
            np.empty(0, np.uint8),
            np.zeros(1, np.int64),
        )

    def copy(self) -> Lexicon:
        """One that can grow without this one."""
        other = Lexicon()
        other.__dict__.update(self.__dict__)
        other._pieces, other._tokens, other._tables = dict(self._pieces), dict(self._tokens), dict(self._tables)
        other._stop = dict(self._stop)
        return other

    def read(self, texts: Iterable[Any]) -> Ragged:
        """The pieces of every text."""
        rows = [pieces(text, row) for row, text in enumerate(texts)]
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        numbers: defaultdict[str, int] = defaultdict(None, self._pieces)
        numbers.default_factory = numbers.__len__
        ids = np.fromiter(map(numbers.__getitem__, chain.from_iterable(rows)), np.int32, int(lengths.sum()))
        self._pieces = dict(numbers)
        return Ragged(ids, np.concatenate([[0], np.cumsum(lengths)]))

    def tokens(self, text: Ragged, vocabulary: Vocabulary) -> Ragged:
        """The tokens of texts that were read. Stop words (when removed) are recognized in any case."""
        tokens, stop_words, lowercase, published = vocabulary
        flat, bounds = self._table(tokens, published)
        counts = np.diff(bounds)[text.ids]
        ids = flat[spans(bounds[text.ids], counts)]
        starts = np.concatenate([[0], np.cumsum(counts)])[text.starts]
        if stop_words or lowercase:
            self._know_words()
        if stop_words:
            keep = ~self._stop[published][ids]
            starts = np.concatenate([[0], np.cumsum(keep)])[starts]
            ids = ids[keep]
        return Ragged(self._lower[ids] if lowercase else ids, starts)

    def spelled(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """All tokens in UTF-8, a space after each, in one array, and where each begins."""
        count, buffer, starts = self._bytes
        if count < len(self._tokens):
            words = [f"{token} ".encode("utf-8", "surrogatepass") for token in self._tokens]
            buffer = np.frombuffer(b"".join(words), np.uint8)
            starts = np.concatenate([[0], np.cumsum(np.fromiter(map(len, words), np.int64, len(words)))])
            self._bytes = (len(words), buffer, starts)
        return buffer, starts

    def _number(self, token: str) -> int:
        return self._tokens.setdefault(token, len(self._tokens))

    def _table(self, tokens: str, published: bool) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The tokens of every piece known so far, flat, and where those of each piece begin."""
        key = tokens, published and tokens != "nltk"
        flat, bounds = self._tables.get(key, (np.empty(0, np.int32), np.zeros(1, np.int64)))
        if len(bounds) <= len(self._pieces):
            new = split_pieces(list(self._pieces)[len(bounds) - 1 :], *key)
            ids = np.fromiter(map(self._number, chain.from_iterable(new)), np.int32)
            ends = len(flat) + np.cumsum(np.fromiter(map(len, new), np.int64, len(new)))
            flat, bounds = np.concatenate([flat, ids]), np.concatenate([bounds, ends])
            self._tables[key] = flat, bounds
        return flat, bounds

    def _know_words(self) -> None:
        """Lower case and stop words of the tokens that are new; a lower-cased token is itself a token."""
        while len(self._lower) < len(self._tokens):
            new = list(self._tokens)[len(self._lower) :]
            lower = [token.lower() for token in new]
            self._lower = np.concatenate([self._lower, np.fromiter(map(self._number, lower), np.int32, len(new))])
            for published, among in ((False, (t in _STOP for t in lower)), (True, map(is_stop_word, new))):
                self._stop[published] = np.concatenate([self._stop[published], np.fromiter(among, bool, len(new))])


def pieces(text: Any, row: int = 0) -> list[str]:
    """A text cut at white space, its first piece marked; the last one reaches back to the last word, and is marked."""
    if not isinstance(text, str):
        raise RequestError(f"a text is a str, got a {type(text).__name__} in row {row}")
    found = text.split()
    if not found:
        return found
    last = len(found) - 1
    while last > 0 and not _WORD.search(found[last]):
        last -= 1
    found[last:] = [" ".join(found[last:]) + END]
    found[0] = END + found[0]
    return found


def split_pieces(found: list[str], tokens: str, published: bool = False) -> list[list[str]]:
    """The tokens of each piece."""
    if published and tokens != "nltk":
        split = stripped if tokens == "spaces" else runs
        return [[token for part in piece.split() for token in split(part)] for piece in found]
    if tokens == "spaces":
        return [piece.split() for piece in found]
    if tokens == "punctuation":
        return [[run for part in piece.split() for run in _RUNS.findall(part)] for piece in found]
    if tokens == "nltk":
        need_nltk()
        return _split_by_nltk(found)
    raise RequestError(f"tokens must be spaces, punctuation or nltk, got {tokens!r}")


def need_nltk() -> None:
    """Raise, with what to do, where NLTK is not installed."""
    if find_spec("nltk") is None:
        raise RequestError(
            "tokens='nltk' needs the package nltk, which is not installed; get it with `pip install 'nasight[text]'`"
        )


def _split_by_nltk(found: list[str]) -> list[list[str]]:
    """NLTK's word tokenizer, without its sentence splitter, which would need a download.

    Its patterns look across white space at the ends of a text only. So pieces from elsewhere have the same tokens in
    any company, and are tokenized many at a time with a word of no consequence between them.
    """
    from nltk.tokenize import NLTKWordTokenizer

    tokenize = NLTKWordTokenizer().tokenize
    inner = [_inner(piece) for piece in found]
    some = [i for i, text in enumerate(inner) if text is not None and _BETWEEN not in text]
    split: dict[int, list[str]] = {}
    for start in range(0, len(some), _TOGETHER):
        batch = some[start : start + _TOGETHER]
        words = tokenize(_BETWEEN + "".join(f" {inner[i]} {_BETWEEN}" for i in batch))
        cuts = [place for place, word in enumerate(words) if word == _BETWEEN]
        split.update((i, words[a + 1 : b]) for i, (a, b) in zip(batch, pairwise(cuts), strict=True))
    return [split[i] if i in split else _alone(piece, tokenize) for i, piece in enumerate(found)]


def _inner(piece: str) -> str | None:
    """A text that has, inside of another one, the tokens of this piece, or None where none is known."""
    text = piece.strip()
    if piece.startswith(END) and text.startswith(('"', "''")):
        return None
    if piece.endswith(END) and "." in text:
        return f"{text[:-1]} ." if _LAST_WORD.fullmatch(text) else None
    return text


def _alone(piece: str, tokenize: Callable[[str], list[str]]) -> list[str]:
    first, last = piece.startswith(END), piece.endswith(END)
    words = tokenize(("" if first else "x ") + piece.strip() + ("" if last else " x"))
    return words[0 if first else 1 : len(words) if last else -1]


def _stop_words() -> frozenset[str]:
    """scikit-learn's English stop words, with the pieces that tokenizers make of contractions."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    return frozenset(ENGLISH_STOP_WORDS) | {"n't", "'s", "'m", "'d", "'ll", "'re", "'ve"}


_STOP = _stop_words()
