"""MySQL and MariaDB as a data source."""
