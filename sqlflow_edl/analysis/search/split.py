"""Rows of a search: training, validation and test rows, and folds."""

from __future__ import annotations

from dataclasses import dataclass

from sqlflow_edl.analysis.validation import HeldOut

FOLDS = ((5_000, 5), (20_000, 3))  # rows, and the folds by default up to as many
SMALL, LARGE = 5_000, 100_000  # rows up to which none are tested on, and from which a twentieth is


@dataclass(frozen=True, slots=True)
class SplitOfSearch(HeldOut):
    """Validation and test rows of a search, which needs more of them than one training. folds: None for the default."""

    folds: int | None = None

    def number_of_folds(self, total: int) -> int:
        """Return the number of folds for so many rows; 1 where the validation rows are written."""
        if self.folds is not None:
            return self.folds
        if self.query or self.fraction is not None:
            return 1
        return next((folds for most, folds in FOLDS if total <= most), 1)

    def rows(self, total: int) -> int:
        """Return the number of rows that are not trained on; all folds have as many."""
        folds, test = self.number_of_folds(total), self.test_rows(total)
        return (total - test) // folds + test if folds > 1 else HeldOut.rows(self, total)

    def shares(self, total: int) -> tuple[float, float]:
        """Return the shares of validation rows and of test rows among `total`."""
        if self.query:
            return 0.0, 0.0
        test, folds = self.test, self.number_of_folds(total)
        if test is None:
            test = 0.0 if total <= SMALL else 0.1 if total < LARGE else 0.05
        if folds > 1:
            return (1 - test) / folds, test
        usual = 0.2 if total <= SMALL else 0.1
        return usual if self.fraction is None else self.fraction, test
