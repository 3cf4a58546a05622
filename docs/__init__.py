"""Pages of the documentation, as package data: `sqlflow help` shows them."""
