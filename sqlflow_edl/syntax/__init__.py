"""First phase: from the text of a program to its syntax tree, `parse(text, dialect) -> [Statement, …]`.

dialects (quotes and comments of a database) > lexer (two lexers) > split (into statements and clauses) > clauses
(LALR, with grammar/extended.lark) > ast_builder (tree to `ast`) > parse.
"""

from sqlflow_edl.syntax.ast import Statement
from sqlflow_edl.syntax.parse import is_complete, parse

__all__ = ["Statement", "is_complete", "parse"]
