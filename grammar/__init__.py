"""The Lark grammar of the extended clauses, as package data."""
