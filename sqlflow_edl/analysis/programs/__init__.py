"""Statements as their text shows them: the tables and models that each one makes and uses."""
