"""Finding of a data check, and the thresholds of all checks with their reasons; docs/data-checks.md lists them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DataWarning:
    """Finding of a check.

    about: the column or part of the rows. message: a sentence. advice: the remedy.
    """

    about: str
    message: str
    advice: str

    def __str__(self) -> str:
        return f"{self.message}; {self.advice}"


def format_share(share: float, digits: int = 1) -> str:
    """Format a share: 34.2 %."""
    return f"{100 * share:.{digits}f} %"


# An id: no value occurs twice.
FEWEST_ROWS = 20  # in fewer rows texts or small numbers may all differ by chance
# distinct values kept of a column: 1 MiB; a share f of repeated values is missed at (1-f)^65536
UNIQUE_SAMPLE = 1 << 17
# pairs of equal numbers that chance would give; then it gives none once in e^10 = 22,000 columns
COINCIDENCES = 10.0
ID_NAMES = frozenset(("id", "ids", "key", "uuid", "guid", "pk", "rowid", "rownum", "index", "idx"))

# One column alone predicts the label.
SAMPLE_ROWS = 20_000  # rows scored: an error of one in 1,000 is seen 20 times
SAMPLE_VALUES = 1 << 23  # of all columns together: 64 MiB of numbers; with more than 419 columns fewer rows
NEAR_PERFECT = 0.999  # share of the variance, or of the mistakes of guessing, that the column explains
UNUSUAL = (
    0.95  # the same: 0.98 of a column equal to the label in 99 % of the rows, 0.93 of petal_width of iris
)
FEWEST_OTHERS = 10  # rows outside the most frequent class; with fewer, a column separates them by chance
LONGEST_TEXT = 64  # characters compared of a text: bounds the sample's memory

# Validation rows that are also training rows.
HELD_OUT_ROWS = 100_000  # validation rows that are looked up: their share is known to 0.2 %
DUPLICATES = 0.01  # share of the validation rows; below, a metric hardly changes
BY_CHANCE = 0.1  # of the share found: if chance alone gives more, rows are similar rather than copies

# A row with the sums of the others.
MOST_SUMMED = 100_000  # rows; spreadsheets and reports have fewer
FEWEST_SUMMANDS = (
    5  # numbers besides 0 that are added up; of fewer, one may be the sum of the others by chance
)
SUM_ROUNDING = 1e-6  # relative error of a sum of numbers that are rounded to cents

# Numbers in float32.
MERGED = (
    0.1  # share of a column's values that become equal to others; of 20,000 instants of a year it is 0.04
)

# Labels that make a metric or a loss say little.
FREQUENT_CLASS = 0.95  # share of the rows; accuracy then has 0.05 to tell models apart
FEWEST_OF_A_CLASS = 10  # rows of the others; fewer teach next to nothing, and weights do not help
FEW_ROWS = 0.01  # share of the rows with the largest deviations
FEWEST_OF_FEW = 5  # rows that are so many
SKEW = 0.6  # share of the variance that few rows make up: 0.08 of normal labels, 0.2 of exponential, 0.5 of lognormal
SHIFTED_ODDS = (
    2.0  # of a class in the rows held out, to those in the training rows: 0.2 and 0.11, 0.5 and 0.67
)
SHIFTED_MEAN = 0.5  # distance of the means, in standard deviations of the training rows
SHIFT_ERRORS = 5.0  # standard errors; of rows that are drawn at random one table in a million differs so
