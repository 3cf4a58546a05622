"""Search of the documentation: what people ask for, and the section that answers it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlflow_edl.cli.help_search import LONGEST_LINE, search

# the twelve questions of a first day, as people type them, and shorter searches
SEARCHES = """
csv with semicolons                | sources             | How a CSV file is read
semicolon separated                | sources             | How a CSV file is read
decimal comma                      | sources             | Numbers, dates and booleans
currency                           | sources             | Numbers, dates and booleans
percent numbers                    | sources             | Numbers, dates and booleans
rare class                         | tutorials/fraud     | Weigh the classes
class weights                      | tutorials/fraud     | Weigh the classes
imbalanced                         | tutorials/fraud     | Weigh the classes
choose a threshold                 | predict             | Thresholds
thresholds                         | predict             | Thresholds
cross-validate                     | train               | Cross-validation
cross validation                   | train               | Cross-validation
words in a text column             | tutorials/reviews   | Words
text columns                       | tutorials/reviews   | Runs of characters
explain one row                    | tutorials/customers | Why
explain one prediction             | tutorials/customers | Why
explanation for a customer         | tutorials/customers | Why
good auc                           | metrics             | Classes
what is log_loss                   | metrics             | Classes
retrain monthly                    | scheduling          | cron
retraining every month             | scheduling          | cron
cron                               | scheduling          | cron
give a model to a colleague        | models              | Give a model to a colleague
copy model to another database     | models              | Give a model to a colleague
share models                       | models              | Give a model to a colleague
limit cpu cores                    | jobs                | Limit cores and memory
limiting threads                   | jobs                | Limit cores and memory
memory                             | jobs                | Limit cores and memory
delete old jobs                    | jobs                | Old jobs
remove old logs                    | jobs                | Old jobs
importances                        | search              | Importances
shap                               | explain             | EXPLAIN
excel                              | sources             | Spreadsheets
"""


@pytest.fixture(scope="module")
def pages(repository: Path) -> list[tuple[str, str]]:
    folder = repository / "docs"
    paths = [*folder.glob("*.md"), *folder.glob("tutorials/*.md")]
    return [
        (path.relative_to(folder).with_suffix("").as_posix(), path.read_text(encoding="utf-8"))
        for path in sorted(paths)
    ]


@pytest.mark.parametrize("row", SEARCHES.strip().splitlines())
def test_the_section_that_answers_is_among_the_first_three(row: str, pages: list[tuple[str, str]]) -> None:
    words, topic, section = map(str.strip, row.split("|"))
    assert (topic, section) in [(match.topic, match.section) for match in search(pages, words)[:3]]


def test_sections_with_the_words_in_the_heading_come_before_one_line_and_several_lines() -> None:
    page = "# Page\n## Lines\nblue\n\ncars\n## Line\nCars that are blue\n## A blue car\nnothing\n"
    matches = search([("page", page)], "blue cars")
    assert [match.section for match in matches] == ["A blue car", "Line", "Lines"]
    assert [match.line for match in matches] == ["nothing", "Cars that are blue", "blue"]


def test_the_index_describes_the_sections_that_it_links_to() -> None:
    index = "# Index\n* How do I paint? [Colours](car.md#my-colours)\n"
    [match] = search([("car", "# Car\n## My colours\ntext"), ("index", index)], "paints")
    assert (match.topic, match.section, match.line) == ("car", "My colours", "text")


def test_a_word_that_no_page_has_and_stop_words_do_not_count() -> None:
    page = [("page", "# Page\nThe engine\n")]
    assert [match.line for match in search(page, "how do I tune-up the engines quaternion")] == ["The engine"]
    assert search(page, "quaternion") == search(page, "how do I") == []


def test_headings_in_code_are_lines() -> None:
    [match] = search([("page", "# Page\n```sh\n# a comment\n```\n")], "comments")
    assert (match.section, match.line) == ("Page", "# a comment")


def test_a_long_line_is_cut_around_the_word() -> None:
    [match] = search([("page", f"# Page\n{'before ' * 30}[needle](x.md) {'after ' * 30}\n")], "needle")
    assert match.line.startswith("… ") and " needle " in match.line and match.line.endswith(" …")
    assert len(match.line) <= LONGEST_LINE + 4
