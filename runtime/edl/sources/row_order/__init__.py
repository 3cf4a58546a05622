"""Order of pinned rows: random, and a function of the rows and the seed alone, for every source.

A row's place is a hash of its values, of the number of equal rows before it (so that equal rows spread out), and of
the seed. Numbers with fractions count as REAL there, because the last digits of a parallel aggregate differ from run
to run; their exact values only order rows that are equal otherwise. DuckDB computes the hashes: in the query itself if
it is the source, else over the rows on their way. Equal rows have equal places in both cases: whole numbers are hashed
as BIGINT, because databases store them in different widths.

With a split, the validation rows come after the others. Whole units are on one side: equal rows, the rows of a group,
or the rows of one time. They are taken in the order of a hash of unit and seed, the latest time first, until the
fraction is reached; units that are larger than the fraction come last in that order. A column that marks them has no
units.

Equal rows are copies of one observation in most tables. They are observations of their own, and each is a unit, where
the rows have few values: `ROWS_PER_VALUE` rows for each different row, or different labels in the share `SCATTERED` of
the rows that equal others in all other columns. Otherwise a category and its label would be on one side only. The rows
of a class in a stratified split are it too if they are all equal.

The rows are read once, with their hashes (`ordered`). `places` finds the order from the hashes alone, 16 to 32 bytes a
row; `store` keeps the rows meanwhile, and gathers them.
"""
