"""pytrec_eval as an oracle.

It ranks ties by document id, and knows whole-number relevance only. So it is given the gains
2^y − 1 as relevance levels, which is its own way to exponential gains, and scores without ties
that spell out our order; the rule for ties has its own tests.
"""

import numpy as np
import pytest
import pytrec_eval

from dualrank.data.dataset import Dataset
from dualrank.evaluation.evaluator import evaluate, evaluate_per_query

CUTOFFS = (1, 3, 5, 10)
PEER_OF = {
    "map": "map",
    "mrr": "recip_rank",
    "ndcg": "ndcg",
    **{f"ndcg@{k}": f"ndcg_cut_{k}" for k in CUTOFFS},
    **{f"map@{k}": f"map_cut_{k}" for k in CUTOFFS},
    **{f"precision@{k}": f"P_{k}" for k in CUTOFFS},
}
MEASURES = {
    "map",
    "recip_rank",
    "ndcg",
    *(f"{name}.{','.join(map(str, CUTOFFS))}" for name in ("ndcg_cut", "map_cut", "P")),
}


def peer_values(scores, data):
    order = np.lexsort((-scores, data.query_of_document))
    qrels, run = {}, {}
    for q in range(len(data)):
        documents = order[data.offsets[q] : data.offsets[q + 1]].tolist()
        qrels[str(q)] = {str(d): int(2 ** data.grades[d] - 1) for d in documents}
        run[str(q)] = {str(d): float(-rank) for rank, d in enumerate(documents)}
    values = pytrec_eval.RelevanceEvaluator(qrels, MEASURES).evaluate(run)
    return {
        ours: np.array([values[str(q)][theirs] for q in range(len(data))])
        for ours, theirs in PEER_OF.items()
    }


@pytest.mark.parametrize("levels", [2, 20, 10**9])
@pytest.mark.parametrize(
    ("shortest", "longest"), [(1, 1), (1, 9), (10, 60), (1, 200)], ids=lambda n: str(n)
)
def test_metrics_agree_on_random_rankings(levels, shortest, longest):
    rng = np.random.default_rng(longest + levels)
    lengths = rng.integers(shortest, longest + 1, 150)
    has_relevant = np.repeat(rng.random(150) < 0.8, lengths)
    data = Dataset.from_arrays(
        np.zeros((lengths.sum(), 1)),
        qid=np.repeat(np.arange(150), lengths),
        grades=rng.choice(5, lengths.sum(), p=[0.5, 0.2, 0.15, 0.1, 0.05]) * has_relevant,
    )
    scores = rng.integers(0, levels, data.document_count) / levels

    expected = peer_values(scores, data)
    values = evaluate_per_query(scores, data, list(PEER_OF))
    means = evaluate(scores, data, list(PEER_OF))
    for key in PEER_OF:
        np.testing.assert_allclose(values[key], expected[key], rtol=0, atol=1e-9, err_msg=key)
        assert means[key] == pytest.approx(expected[key].mean(), abs=1e-9)
