"""Click logs as others write them, turned into the distinct things that happened.

`read_log` holds the verb, `log_options` how it is done. `log_files` finds files of one of the
`formats` (a new one is a `LogFormat` in a file of its own, and a line there); `columns` says which
of their columns mean what; `reduction` is the SQL that rebuilds sessions, checks and counts them,
on an `engine`; `examples` shows what is wrong, and `reading_report` what was read and left out.
What comes out becomes a `ClickLog` by `assembly`, and `features_join` points it to a data set.
"""
