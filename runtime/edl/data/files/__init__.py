"""CSV, Parquet and RecordIO files as ranges of rows."""
