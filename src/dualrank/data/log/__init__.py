"""Click logs as others write them, turned into the distinct things that happened.

`reader` holds the verb, `read_log`. A `source` is files of some format; `columns` says which of
their columns mean what; `reduction` is the SQL that rebuilds sessions, checks and counts them, on
an `engine`; `examples` shows what is wrong, and `report` tells what was read and left out. What
comes out becomes a `ClickLog` by `assembly`, and `features_join` points it to a data set.
"""
