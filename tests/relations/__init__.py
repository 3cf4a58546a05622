"""Metamorphic relations: what must stay the same when a table or a statement changes in a way that does not matter.

`tables` and `statements` draw inputs as data, `places` brings them into databases, files and data frames, `showing`,
`planning`, `predicting`, `measuring`, `training` and `running` hold the relations, and `runner` draws seeds until the
time is over. `docs/design/relations.md` describes them.
"""
