"""BM25 on nfcorpus against tantivy's and bm25s's, by rank correlation and nDCG@10."""

import io
import os
from pathlib import Path

import numpy as np
import pytest
import zstandard
from scipy.stats import kendalltau

from dualrank.data.dataset import Dataset
from dualrank.evaluation.evaluator import evaluate
from dualrank.pages.index import PageIndex
from dualrank.pages.retrieval import best_pages
from dualrank.pages.sources import HeldPages
from dualrank.pages.tables import Queries
from dualrank.pages.tokens import Tokeniser
from dualrank.pages.word_counts import QueryWords, count_words

DEPTH = 100
TOKENISER = Tokeniser("english", stop_words=True)


def lines(name):
    root = os.environ.get("DUALRANK_DATA")
    if root is None:
        pytest.skip("set DUALRANK_DATA to the folder that holds nfcorpus/")
    with (Path(root) / "nfcorpus" / f"{name}.zst").open("rb") as file:
        stream = zstandard.ZstdDecompressor().stream_reader(file)
        return [line.rstrip("\n").split("\t") for line in io.TextIOWrapper(stream, "utf-8")]


@pytest.fixture(scope="module")
def collection():
    texts = dict(lines("dev.docs") + lines("test.docs"))
    queries = Queries(*map(list, zip(*lines("test.titles.queries"), strict=True)))
    judged = {}
    for query, _, document, grade in lines("test.3-2-1.qrel"):
        judged.setdefault(query, {})[document] = int(grade)
    return texts, queries, judged


def best(collection, tokeniser):
    texts, queries, _ = collection
    pages = HeldPages([{"doc_id": name, "content": text} for name, text in texts.items()])
    words = QueryWords.of(queries, tokeniser)
    counts = count_words(pages, words, tokeniser, jobs=2)
    rows, found = best_pages(counts, words, DEPTH)
    return {
        query: counts.doc_ids[found[rows == i]].tolist()
        for i, query in enumerate(queries.query_ids)
    }


@pytest.fixture(scope="module")
def ours(collection):
    return best(collection, TOKENISER)


def ndcg(run, judged):
    """nDCG@10 with the ideal over all judged pages; what was not found stands below rank 10."""
    qid, grades, scores = [], [], []
    for query, grade_of in judged.items():
        listed = run.get(query, [])
        rest = [name for name in grade_of if name not in set(listed)]
        for rank, name in enumerate([*listed, *[None] * 10, *rest]):
            qid.append(query)
            grades.append(grade_of.get(name, 0))
            scores.append(-rank)
    data = Dataset.from_arrays(np.zeros((len(qid), 1)), qid, grades, max_grade=3)
    return evaluate(np.array(scores, float), data, ["ndcg@10"])["ndcg@10"]


def correlation(one, other):
    """Kendall's τ over the pages that both found, averaged over queries."""
    values = []
    for query, listed in one.items():
        places = {name: rank for rank, name in enumerate(other[query])}
        common = [places[name] for name in listed if name in places]
        if len(common) > 4:
            values.append(kendalltau(np.arange(len(common)), common).statistic)
    return float(np.mean(values))


@pytest.mark.slow
def test_the_index_ranks_as_the_exact_scores_do(collection, ours, tmp_path):
    texts, queries, judged = collection
    index = PageIndex.open_or_create(tmp_path / "index", TOKENISER)
    index.add(HeldPages([{"doc_id": n, "content": text} for n, text in texts.items()]), jobs=1)
    theirs = {
        query: [hit.doc_id for hit in index.search(text, DEPTH)]
        for query, text in zip(queries.query_ids, queries.texts, strict=True)
    }
    print(f"tantivy: tau {correlation(ours, theirs):.4f}, nDCG@10 {ndcg(theirs, judged):.4f}")
    assert correlation(ours, theirs) > 0.95
    assert ndcg(theirs, judged) == pytest.approx(ndcg(ours, judged), abs=0.01)


def test_bm25s_ranks_in_the_same_way(collection, ours):
    bm25s = pytest.importorskip("bm25s")
    texts, queries, judged = collection
    names = list(texts)
    retriever = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
    retriever.index([TOKENISER.words(text) for text in texts.values()], show_progress=False)
    theirs = {}
    for query, text in zip(queries.query_ids, queries.texts, strict=True):
        words = list(dict.fromkeys(TOKENISER.words(text)))
        words = [word for word in words if word in retriever.vocab_dict]
        scores = retriever.get_scores(words) if words else np.zeros(len(names))
        order = np.argsort(-scores, kind="stable")[:DEPTH]
        theirs[query] = [names[i] for i in order if scores[i] > 0]
    print(f"bm25s: tau {correlation(ours, theirs):.4f}, nDCG@10 {ndcg(theirs, judged):.4f}")
    assert correlation(ours, theirs) > 0.99
    assert ndcg(theirs, judged) == pytest.approx(ndcg(ours, judged), abs=0.002)


def test_ndcg_is_what_is_known_of_this_collection(collection, ours):
    """0.29 without stemming is what others find on these files; stemming adds to it."""
    plain = ndcg(best(collection, Tokeniser()), collection[2])
    print(f"nDCG@10 without stemming {plain:.4f}")
    assert plain == pytest.approx(0.29, abs=0.02)
    assert ndcg(ours, collection[2]) > plain
