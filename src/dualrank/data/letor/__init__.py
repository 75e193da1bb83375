"""LETOR / SVMlight text: `grade qid:ID index:value ... # docid = X`, one document per line.

`reader` and `writer` hold the two verbs. Reading goes from the bytes of a file (`source`) over
blocks of whole lines (`lines`) and the loops that turn them into numbers (`parser`, `kernels`) to
arrays on disk (`arrays`), which a `cache` keeps for the next time. `rules` says what a line may
hold and has the sentence for each thing that is wrong.
"""
