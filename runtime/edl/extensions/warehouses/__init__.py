"""Warehouses: databases with a driver that yields Arrow or rows of the DB-API. They keep results and nothing else.

A query runs in the warehouse, once, and its rows are pinned in the job's folder in the order that all sources share.
So a warehouse needs no transactions, no keys and no right to write. Models are in a model store, by default a folder
of the user. Results are staged in files of this machine; a commit uploads them into a new table, which then takes the
place of the target.

A warehouse is a subclass of `edl.extensions.warehouses.source.WarehouseSource` in one file, such as `clickhouse.py`:

    label, extra             its name, and the extra of this package with its driver
    dialect, quote, lexicon  sqlglot's name of its SQL, the quotation mark of its names, and its words
    declared                 types that sqlglot does not write as the warehouse wants them
    driver_errors, patterns  exceptions of its driver, and what their messages name: `edl.extensions.warehouses.errors`
    tables_query, databases_query, existing_query  queries of names, and of a table's kind and comment
    connect                  opens the connection, importing the driver
    rows, append, interrupt, close  run a statement, append batches to a table, stop, end
    create, rename, swap     statements that make a result and put it in the place of the target
    plain, probe, existing, stored_name  where a query, or the spelling of names, differ

`edl.extensions.warehouses.drivers` has `rows`, `append`, `interrupt` and `close` for drivers of ADBC and of the DB-API.
Rows in `edl.data.url`, the dialect in `sqlflow_edl.syntax.dialects` and the extra in setup.cfg complete it. Its golden
statements are in `tests/golden/warehouses`; `tests/fixtures/databases/quarry.py` has two made-up ones on DuckDB.
"""
