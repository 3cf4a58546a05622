"""Splitting of a program into statements, and of an extended statement into its query and its clauses.

Two lexers work on one text and each must see only its own part, so one pass does both cuts: it reads SQL in the
dialect until a semicolon or the beginning of the clauses, and from there on reads clauses until the semicolon. Clauses
begin, outside the parentheses, strings and comments of a query,

* at TO TRAIN, TO PREDICT and so on, whatever follows;
* at TRAIN, PREDICT, ANALYZE, LABEL or TARGET without TO, where the query may end and all that follows
  parses as clauses, so that `SELECT train FROM t train` stays ordinary SQL;
* at the first word of a statement that has no query, such as SHOW TRAIN.

Text that looks like clauses and does not parse as such is ordinary SQL with a `Doubt`: if it is invalid SQL too,
`sqlflow_edl.syntax.parse` can say why it is no extended statement. The pass is linear in the text, and never raises.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from edl.errors import Span, StatementSyntaxError, nearest
from sqlflow_edl.syntax.dialects import Dialect
from sqlflow_edl.syntax.error_messages import (
    did_you_mean_keyword,
    in_parentheses,
    misplaced_clause_error,
    no_into,
    not_a_query,
    query_of_create,
    show_train_in_query,
    unclosed_error,
    unreadable_error,
    variable,
)
from sqlflow_edl.syntax.keywords import CLAUSES, LazyTokens
from sqlflow_edl.syntax.lexer import Token, clause_tokens, code_tokens, with_hash_comments
from sqlflow_edl.syntax.lookalikes import FEW, explain_lookalike

if TYPE_CHECKING:
    from lark import Token as LarkToken
    from lark import Tree

VERBS = ("TRAIN", "PREDICT", "EVALUATE", "EXPLAIN", "ANALYZE", "MAXIMIZE", "MINIMIZE", "RUN")  # behind TO
_BARE = frozenset(("TRAIN", "PREDICT", "ANALYZE", "LABEL", "TARGET"))  # without TO
_QUERIES = frozenset(("SELECT", "WITH", "FROM", "("))
# Statements without a query, by their first two words; True: only if something follows, because the words
# alone are SQL in some dialect (DuckDB's SHOW train describes the table `train`).
_OWN = {
    ("SHOW", "TRAIN"): True,
    ("SHOW", "CURVE"): True,
    ("SHOW", "TRIALS"): True,
    ("SHOW", "FEATURES"): True,
    ("SHOW", "MODELS"): False,
    ("DESCRIBE", "MODEL"): True,
    ("DESC", "MODEL"): True,
    ("SET", "MODEL"): True,
    ("DROP", "MODEL"): False,
}
# Statements in which TO TRAIN has no meaning in SQL, unlike GRANT … TO, RENAME TO, COPY … TO.
_REFUSES_TO = frozenset(
    ("DESCRIBE", "DESC", "DROP", "INSERT", "UPDATE", "DELETE", "REPLACE", "TABLE", "VALUES")
)
_ROUTINES = frozenset(("TRIGGER", "PROCEDURE", "FUNCTION", "EVENT"))
_LOOPS = frozenset(("IF", "LOOP", "WHILE", "REPEAT", "FOR"))  # END IF ends no BEGIN

_MOST_DOUBTS = 8


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# A query cannot end after these, so an operand, a table or an alias follows.
_CONTINUES = _words("""
    SELECT DISTINCT ALL FROM WHERE AND OR NOT ON BY JOIN AS IN LIKE ILIKE RLIKE REGEXP IS BETWEEN CASE WHEN THEN
    ELSE HAVING QUALIFY LIMIT OFFSET UNION EXCEPT INTERSECT MINUS WITH RECURSIVE USING INTO SET INNER LEFT RIGHT
    FULL OUTER CROSS NATURAL LATERAL INTERVAL EXISTS SEMI ANTI GROUP ORDER PARTITION DIV MOD
    . , = < > + - * / % | & ^ ! ~ : @
""")
# Words of SQL that may follow an alias: `FROM t train JOIN u`.
_RESUMES = _words("""
    FROM WHERE GROUP ORDER HAVING QUALIFY WINDOW LIMIT OFFSET FETCH FOR UNION EXCEPT INTERSECT MINUS JOIN INNER
    LEFT RIGHT FULL CROSS NATURAL ASOF POSITIONAL SEMI ANTI ON LATERAL PIVOT UNPIVOT TABLESAMPLE AND OR
""")


@dataclass(frozen=True, slots=True)
class Doubt:
    """Error to report if the statement's SQL turns out to be invalid.

    query: the text before the error; the error is reported only if that alone is a query.
    """

    query: Span
    error: StatementSyntaxError


@dataclass(frozen=True, slots=True)
class Piece:
    """Statement of a program: ordinary SQL, or a query and the tokens of its clauses.

    raw: the characters up to and including the semicolon; the pieces of a program cover it without a gap. span: the
    same without the semicolon, the surrounding white space and the comments before. refused: the error to raise if the
    database refuses ordinary SQL that was probably meant as another statement.
    """

    raw: Span
    span: Span
    ended: bool  # by a semicolon
    empty: bool = False  # nothing but comments
    clauses: LazyTokens | None = None  # None: ordinary SQL
    tree: Tree[LarkToken] | None = None  # of the clauses, if they were parsed to find where they begin
    query: Span | None = None
    plan: bool = False  # EXPLAIN precedes it
    bare: bool = False  # without TO: an extended statement only if the query is complete
    doubts: tuple[Doubt, ...] = ()
    error: StatementSyntaxError | None = None
    refused: StatementSyntaxError | None = None


def split(text: str, dialect: Dialect) -> Iterator[Piece]:
    """Yield the statements of a program in order; their `raw` spans cover the text."""
    start = 0
    while start < len(text):
        piece = _Walk(text, start, dialect).piece()
        yield piece
        start = piece.raw.end


def _statement_tokens(text: str, start: int, dialect: Dialect) -> Iterator[Token]:
    """Yield the tokens of a statement without comments.

    Before a statement, and in CREATE MODEL before its query, # begins a comment in every dialect: no database has
    another meaning for it there, and most older files for BigQuery ML begin with #standardSQL.
    """
    head: list[Token] = []
    depth, begin = 0, len(text)
    for token in code_tokens(text, start, with_hash_comments(dialect)):
        if not _may_create_model([head_token.word for head_token in (*head, token)]):
            begin, head = (head or [token])[0].start, []
            break
        if head and (head[-1].kind == "semicolon" or (head[-1].word == "AS" and not depth)):
            begin = token.start
            break
        head.append(token)
        depth += token.nesting
    yield from head
    yield from code_tokens(text, begin, dialect)


def _may_create_model(words: Sequence[str]) -> bool:
    """Return True if CREATE MODEL begins with these words, or these words begin with it."""
    return any(
        all(word == expected for word, expected in zip(words, beginning, strict=False))
        for beginning in (("CREATE", "MODEL"), ("CREATE", "OR", "REPLACE", "MODEL"))
    )


class _Walk:
    """Pass over one statement, from `start` to its semicolon."""

    def __init__(self, text: str, start: int, dialect: Dialect) -> None:
        self._text = text
        self._start = start
        self._dialect = dialect
        self._tokens = _statement_tokens(text, start, dialect)
        self._ahead: deque[Token] = deque()
        self._earlier = self._before = Token("", start, start, "")  # the last two tokens
        self._open: list[Token] = []  # open parentheses
        self._routine = False  # CREATE TRIGGER …
        self._blocks = 0  # open BEGINs in it
        self._doubts: list[Doubt] = []
        self._misplaced: list[Doubt] = []
        self._inside: Token | None = None  # the parenthesis around a TO TRAIN
        self._select: int | None = None  # start of the query of a CREATE … AS
        self._error: StatementSyntaxError | None = None
        self._clauses: LazyTokens | None = None  # without TO, with their tree
        self._tree: Tree[LarkToken] | None = None

    def piece(self) -> Piece:
        self._first = self._peek(0)
        self._plan = self._peek(0).word == "EXPLAIN" and self._begins(1)
        if self._plan:
            self._ahead.popleft()
        self._query_start = self._peek(0).start
        self._is_query = (self._peek(0).word or self._peek(0).text) in _QUERIES
        if self._is_own():
            return self._make_extended_piece(self._peek(0))
        self._refused = explain_lookalike([self._peek(distance) for distance in range(FEW)])
        while (token := self._next()).kind not in ("end", "unclosed"):
            if token.kind == "semicolon" and not self._blocks:
                return self._sql(token)
            if self._begins_clauses(token):
                return self._make_extended_piece(token, bare=token.word != "TO")
            self._follow(token)
        return self._sql(token)

    # --------------------------------------------------------------------------------------- tokens

    def _peek(self, distance: int) -> Token:
        while len(self._ahead) <= distance:
            self._ahead.append(next(self._tokens, Token("end", len(self._text), len(self._text), "")))
        return self._ahead[distance]

    def _next(self) -> Token:
        token = self._peek(0)
        self._ahead.popleft()
        return token

    def _follow(self, token: Token) -> None:
        """Track open parentheses, and the open blocks of a routine's body."""
        if token.kind == "open":
            self._open.append(token)
            self._error = self._error or variable(self._text, token.start)
        elif token.kind == "close" and self._open:
            self._open.pop()
        elif token.word in _ROUTINES and self._first.word == "CREATE":
            self._routine = True
        elif self._routine and token.word in ("BEGIN", "CASE"):
            self._blocks += self._before.word != "END"
        elif self._blocks and token.word == "END":
            self._blocks -= self._peek(0).word not in _LOOPS
        elif token.word in ("SELECT", "WITH") and (self._before.word == "AS" or self._before.kind == "open"):
            self._select = token.start if self._select is None else self._select
        self._earlier, self._before = self._before, token

    # -------------------------------------------------------------------------- beginning of clauses

    def _begins(self, distance: int) -> bool:
        """Return True if the text after EXPLAIN begins like a query, or like clauses without one."""
        token = self._peek(distance)
        if token.word in ("TRAIN", "TO"):
            return self._peek(distance + 1).kind == "word"
        return (token.word or token.text) in _QUERIES

    def _is_own(self) -> bool:
        """Return True if the statement begins with a word of ours that begins no SQL statement."""
        words = (self._peek(0).word, self._peek(1).word)
        if words[0] == "SET" and (self._peek(2).text in ("=", ":", ".") or self._peek(2).word == "TO"):
            return False  # a variable of the database
        if words in _OWN:
            return self._peek(2).kind not in ("end", "semicolon") or not _OWN[words]
        return words[0] in ("TO", "TRAIN", "PREDICT")

    def _begins_clauses(self, token: Token) -> bool:
        if token.kind != "word":
            return False
        if token.word == "TO":
            return self._to(token)
        if self._open or self._continues():
            return False
        if self._peek(0).kind not in ("word", "name", "string"):
            return False
        if token.word in _BARE:
            return (self._is_query or token is self._first) and self._parses(token)
        if self._is_query:
            self._suspect(token)
        return False

    def _continues(self) -> bool:
        """Return True if the query cannot end behind the last token."""
        last, earlier = self._before, self._earlier
        ends = (
            (last.word == "ALL" and earlier.word in ("BY", "LIMIT"))
            or (last.text == "*" and (earlier.word or earlier.text) in ("SELECT", "DISTINCT", ",", "."))
            or (last.text == "%" and earlier.text.isdecimal())  # LIMIT 10%
        )
        return not ends and (last.word in _CONTINUES or last.text in _CONTINUES)

    def _suspect(self, token: Token) -> None:
        """Remember a word in the query that looks like a misplaced or misspelt keyword of a clause."""
        following = self._peek(1).text
        if token.word == "COLUMN" or (token.word == "WITH" and following in ("=", ".")):
            self._misplaced += [self._doubt(token, misplaced_clause_error(token))] * (not self._misplaced)
        elif token.word[:1] in ("T", "P") and (near := nearest(token.word, ("TRAIN", "PREDICT"))):
            self._remember(token, did_you_mean_keyword(token, near))

    def _to(self, token: Token) -> bool:
        """Return True if TO begins the clauses, that is, a verb follows; where it may not, remember the error."""
        verb = self._peek(0)
        if verb.kind != "word" or self._before.word == "AS" or self._before.text == ".":
            return False
        if verb.word not in VERBS:
            if self._is_query and not self._open and (near := nearest(verb.text, VERBS)):
                self._remember(token, did_you_mean_keyword(verb, near))
            return False
        if self._open and self._is_query:
            self._inside = self._inside or self._open[0]
            query = self._trim(self._open[-1].end, token.start)
            self._doubts.append(Doubt(query, in_parentheses(token, verb)))
        elif not self._is_query and self._first.word in _REFUSES_TO:
            self._error = not_a_query(self._first, verb)
        elif self._first.word == "CREATE" and self._select is not None:
            query = self._trim(self._select, token.start)
            self._doubts.append(Doubt(query, query_of_create(self._first, token, verb)))
        return self._is_query and not self._open

    def _parses(self, token: Token) -> bool:
        """Return True if all that follows `token` parses as clauses; if not, remember the error."""
        from sqlflow_edl.syntax.clauses import parse_clauses

        if len(self._doubts) == _MOST_DOUBTS or (self._peek(0).word in _RESUMES and not self._ends_item(1)):
            return False
        if token.word == "TRAIN" and self._before.word == "SHOW":
            self._remember(self._before, show_train_in_query(self._before, token))
            return False
        clauses = LazyTokens(clause_tokens(self._text, token.start, self._dialect))
        try:
            tree = parse_clauses(clauses, self._dialect)
        except StatementSyntaxError as error:
            self._remember(token, error)
            return False
        statement = tree.children[0]
        rules = {getattr(child, "data", None) for child in getattr(statement, "children", ())}
        if token.word in ("LABEL", "TARGET") and "into" not in rules:
            self._remember(token, no_into(token, clauses.last()))
            return False
        if not (self._is_query or rules & {"attributes", "using", "into"}):
            return False
        self._clauses, self._tree = clauses, tree
        return True

    def _ends_item(self, distance: int) -> bool:
        """Return True if the token may follow a name in a clause."""
        token = self._peek(distance)
        return (
            token.kind in ("end", "semicolon") or token.word in CLAUSES or token.text in (",", ".", ":", "/")
        )

    def _remember(self, token: Token, error: StatementSyntaxError) -> None:
        if len(self._doubts) < _MOST_DOUBTS and self._peek(0).word not in _RESUMES:
            self._doubts.append(self._doubt(token, error))

    def _doubt(self, token: Token, error: StatementSyntaxError) -> Doubt:
        return Doubt(self._trim(self._query_start, token.start), error)

    # ---------------------------------------------------------------------------------------- pieces

    def _sql(self, last: Token) -> Piece:
        """Return a piece of ordinary SQL, up to the semicolon, the end of the text, or an unclosed quote."""
        ended = last.kind == "semicolon"
        end = last.start if ended else len(self._text)
        never_closed = last if last.kind == "unclosed" else self._inside
        if never_closed in (last, *self._open):
            self._error = unclosed_error(never_closed)
        return Piece(
            raw=Span(self._start, end + ended),
            span=self._trim(min(self._first.start, end), end),
            ended=ended,
            empty=self._first is last and last.kind != "unclosed",
            doubts=(*self._doubts, *self._misplaced),
            error=self._error or unreadable_error(self._text, Span(self._start, end), Span(self._start, end)),
            plan=self._plan,
            refused=self._refused,
        )

    def _make_extended_piece(self, token: Token, *, bare: bool = False) -> Piece:
        """Return a piece with a query up to `token` and clauses from there."""
        clauses = self._clauses or LazyTokens(clause_tokens(self._text, token.start, self._dialect))
        end = clauses.last().start
        ended = end < len(self._text)
        return Piece(
            raw=Span(self._start, end + ended),
            span=self._trim(self._first.start, clauses[-2].end),
            ended=ended,
            clauses=clauses,
            tree=self._tree,
            query=self._trim(self._query_start, token.start) if self._is_query else None,
            plan=self._plan,
            bare=bare and self._is_query,
            doubts=(*self._doubts, *self._misplaced),
            error=self._error
            or unreadable_error(self._text, Span(self._start, end), Span(self._start, token.start)),
        )

    def _trim(self, start: int, end: int) -> Span:
        """Return [start, end) without surrounding white space and byte order mark."""
        while start < end and _is_space(self._text[start]):
            start += 1
        while start < end and _is_space(self._text[end - 1]):
            end -= 1
        return Span(start, end)


def _is_space(character: str) -> bool:
    return character.isspace() or character == "\ufeff"
