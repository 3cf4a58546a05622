"""Phase one: from the text of a program to its syntax tree, `parse(text, dialect) -> [Statement, …]`.

dialects (how a database quotes) > lexer (two lexers) > split (the two-mode walk) > clauses (LALR, with
grammar/extended.lark) > build (tree to `ast`) > parse.
"""

from sqlflow_edl.syntax.ast import Statement
from sqlflow_edl.syntax.parse import is_complete, parse

__all__ = ["Statement", "is_complete", "parse"]
