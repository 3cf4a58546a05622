"""Tables of lake houses as data sources: Delta Lake and Iceberg."""
