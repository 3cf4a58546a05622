"""Names and docstrings of a package, read in one pass over its modules."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

# Names that do not say what they hold.
VAGUE = {"each", "found", "given", "known", "made", "own", "there", "wanted", "written"}
# Imperatives and nouns that are past forms as well, or end in "ed".
NO_PARTICIPLES = {
    "bound",
    "cast",
    "cut",
    "embed",
    "exceed",
    "feed",
    "need",
    "put",
    "read",
    "run",
    "seed",
    "set",
    "split",
}
PAST_FORMS = re.compile(
    r"begun|built|chosen|done|drawn|gone|grown|heard|held|hidden|kept|known|laid|left|lost|made|meant|met|paid|said|seen"
    r"|sent|shown|sold|spent|taken|told|understood|won|written|[a-z]{3,}ed"
)
PREPOSITIONS = re.compile(
    r"above|after|among|as|at|before|behind|below|beside|between|by|few|first|for|from|here|how|in|into|last|next|none|of"
    r"|off|on|others|out|over|own|since|some|there|to|under|up|what|when|where|which|whose|why|with|within|without"
)


@dataclass
class Words:
    """Docstrings with their places, names of functions, methods and classes, and bound names with their numbers."""

    docstrings: list[tuple[str, str]] = field(default_factory=list)
    functions: list[str] = field(default_factory=list)
    methods: list[str] = field(default_factory=list)
    classes: list[str] = field(default_factory=list)
    bindings: Counter[str] = field(default_factory=Counter)

    @property
    def bare_functions(self) -> list[str]:
        """Functions that are named by a participle or a preposition alone."""
        return sorted(filter(is_bare, self.functions))

    @property
    def bare_methods(self) -> list[str]:
        """Methods and properties that are named by a participle or a preposition alone."""
        return sorted(filter(is_bare, self.methods))

    @property
    def vague_bindings(self) -> dict[str, int]:
        """Number of variables with each of the vague names."""
        return {name: self.bindings[name] for name in sorted(VAGUE)}

    def rate(self, pattern: str) -> float:
        """Count the matches of a pattern among 1,000 words of the docstrings."""
        texts = [text for _, text in self.docstrings]
        matches = sum(len(re.findall(pattern, text, re.IGNORECASE)) for text in texts)
        return 1000 * matches / sum(len(text.split()) for text in texts)


@cache
def words_of(folder: Path) -> Words:
    """Collect the words of a folder's modules; generated ones are left out, and names that ElasticDL gave."""
    words = Words()
    for path in sorted(folder.rglob("*.py")):
        if "_pb2" not in path.name and path.parts[-3:-1] != ("elasticdl", "names"):
            module = ast.parse(path.read_text(encoding="utf-8"))
            place = str(path.relative_to(folder.parent))
            for node in ast.walk(module):
                _add(words, node, place)
            words.functions += [
                node.name for node in module.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            ]
    return words


def _add(words: Words, node: ast.AST, place: str) -> None:
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
            words.bindings[name.strip("_")] += 1
        case ast.Module() | ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
            if isinstance(node, ast.ClassDef):
                words.classes.append(node.name)
                words.methods += [
                    member.name
                    for member in node.body
                    if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef)
                ]
            if text := ast.get_docstring(node):
                words.docstrings.append((f"{place}:{getattr(node, 'lineno', 1)}", text))


def is_bare(name: str) -> bool:
    """Return True for a name of one word that is a participle or a preposition."""
    word = name.strip("_")
    return word not in NO_PARTICIPLES and bool(PAST_FORMS.fullmatch(word) or PREPOSITIONS.fullmatch(word))


def shared_names(names: Iterator[str]) -> list[str]:
    """Return the names that occur more than once."""
    return sorted(name for name, count in Counter(names).items() if count > 1)
