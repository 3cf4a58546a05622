"""PostgreSQL as a data source."""
