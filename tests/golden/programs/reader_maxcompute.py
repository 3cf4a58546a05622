"""The table reader: maxcompute. Generated from job.json; edit freely.

`pin` fixes the rows of the job in a folder, `custom_data_reader` reads a range of them.
"""

from edl import data

SOURCE = "maxcompute://LTAIreader@service.example/api?curr_project=shop"  # without the password
SELECT = "SELECT age, department, address, income FROM employee"


def pin(folder, *, seed, shuffle):
    """The query's rows as a table of ours, in an order that only the rows and the seed decide, and a download session
    that all processes share. The secret key comes from SQLFLOW_SOURCE or the file of connections."""
    with data.connect(SOURCE) as source:
        return source.pin(SELECT, folder, seed=seed, shuffle=shuffle)


def unpin(pinned, folder):
    """Drop the table of the fixed rows; the job is over."""
    with data.connect(SOURCE) as source:
        source.unpin(pinned, folder)


def custom_data_reader(pinned, folder):
    """A reader of the shards [start, end) of the fixed rows, as record batches."""
    return data.open_reader(pinned, folder)
