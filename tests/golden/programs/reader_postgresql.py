"""Table reader: postgresql. Generated from job.json; edit freely.

`pin` pins the rows of the job in a folder, `custom_data_reader` reads a range of them.
"""

from edl import data

SOURCE = "postgresql://reader@db.example:5432/shop"  # without the password
SELECT = "SELECT age, department, address, income FROM employee"


def pin(folder, *, seed, shuffle):
    """Pin the query's rows in a table with a dense key (or an Arrow file), in an order set by the rows and the seed.

    The password comes from SQLFLOW_SOURCE or the file of connections.
    """
    with data.connect(SOURCE) as source:
        return source.pin(SELECT, folder, seed=seed, shuffle=shuffle)


def unpin(pinned, folder):
    """Drop the table of the pinned rows after the job."""
    with data.connect(SOURCE) as source:
        source.unpin(pinned, folder)


def custom_data_reader(pinned, folder):
    """Return a reader of the shards [start, end) of the pinned rows, as record batches."""
    return data.open_reader(pinned, folder)
