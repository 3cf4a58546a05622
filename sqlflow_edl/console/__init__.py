"""SQL console: statements typed one after another, each followed by its result.

    prompt ── text ──▶ shell ──▶ commands, or statements ──▶ connection.session ──▶ screen

The prompt appears before the compiler and the database driver are loaded; a thread opens the session meanwhile.
Completion runs in a thread, too: `context` finds the position of the cursor in the statement, and
`completion_rules` lists what can stand there, from the tables that check statements and the `catalog` of the
data source.
"""
