"""Table reader: duckdb. Generated from job.json; edit freely.

`pin` pins the rows of the job in a folder, `custom_data_reader` reads a range of them.
"""

from edl import data

SOURCE = "duckdb:///demo.duckdb"  # without the password
SELECT = "SELECT age, department, address, income FROM employee"
SPLIT = data.Split("group", 'depart"ment', fraction=0.2, fewest=0)  # the validation rows


def pin(folder, *, seed, shuffle):
    """Pin the query's rows in an Arrow file, in an order set by the rows and the seed."""
    with data.connect(SOURCE) as source:
        return source.pin(SELECT, folder, seed=seed, shuffle=shuffle, split=SPLIT)


def custom_data_reader(pinned, folder):
    """Return a reader of the shards [start, end) of the pinned rows, as record batches."""
    return data.open_reader(pinned, folder)
