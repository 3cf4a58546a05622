"""Forecasts of time series: a model of rows, over examples that hold what was known some steps before a row.

`Series` makes the examples of a table: for a row of a series and a number of steps, the last values before, values of
earlier seasons, and means, all relative to the level and the scale of the series at that time.
"""

from edl.forecasting.examples import Examples, Series
from edl.forecasting.reader import ExamplesReader, with_examples

__all__ = ["Examples", "ExamplesReader", "Series", "with_examples"]
