"""The public sets are found under the names that their downloads give them."""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest
import zstandard

from dualrank.data.dataset import concatenate
from dualrank.data.letor.reader import read_letor
from dualrank.data.public_sets import PUBLIC_SETS, load_public
from dualrank.errors import DataError, SettingsError

PACKERS = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.compress}


def place(path, text, suffix=""):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_name(path.name + suffix).write_bytes(PACKERS[suffix](text.encode()))


def query(qid):
    return f"1 qid:{qid} 1:0.5\n0 qid:{qid} 2:0.25\n"


def ids(splits):
    return [part.query_ids.tolist() for part in (splits.train, splits.valid, splits.test)]


FILES = {
    "yahoo-set1": "set1.train.txt set1.valid.txt set1.test.txt",
    "mslr-web10k": "Fold1/train.txt Fold1/vali.txt Fold1/test.txt",
    "mslr-web30k": "Fold1/train.txt Fold1/vali.txt Fold1/test.txt",
    "istella-s": "sample/train.txt sample/vali.txt sample/test.txt",
    "mq2007": "Fold1/train.txt Fold1/vali.txt Fold1/test.txt",
    "mq2008": "Fold1/train.txt Fold1/vali.txt Fold1/test.txt",
}


@pytest.mark.parametrize("name", PUBLIC_SETS)
@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("suffix", PACKERS)
def test_the_name_knows_files_features_and_grades(tmp_path, name, inside, suffix):
    folder = tmp_path / PUBLIC_SETS[name].folders[0] if inside else tmp_path
    for number, file in enumerate(FILES[name].split()):
        place(folder / file, query(f"q{number}"), suffix)
    splits = load_public(name, tmp_path)
    assert ids(splits) == [["q0"], ["q1"], ["q2"]]
    features = {"y": 700, "i": 220}.get(name[0], 136 if name[1] == "s" else 46)
    for part in (splits.train, splits.valid, splits.test):
        assert part.feature_count == features
        assert part.max_grade == (2 if name.startswith("mq") else 4)


def test_a_fold_is_its_own_folder(tmp_path):
    for fold in range(1, 6):
        for split in ("train", "vali", "test"):
            place(tmp_path / f"Fold{fold}/{split}.txt", query(f"{split}{fold}"))
    assert ids(load_public("mslr-web10k", tmp_path, 4)) == [["train4"], ["vali4"], ["test4"]]


@pytest.mark.parametrize(
    ("fold", "expected"),
    [
        (1, [["S1", "S2", "S3"], ["S4"], ["S5"]]),
        (2, [["S2", "S3", "S4"], ["S5"], ["S1"]]),
        (3, [["S3", "S4", "S5"], ["S1"], ["S2"]]),
        (4, [["S4", "S5", "S1"], ["S2"], ["S3"]]),
        (5, [["S5", "S1", "S2"], ["S3"], ["S4"]]),
    ],
)
def test_folds_are_put_together_from_five_parts(tmp_path, fold, expected):
    for part in range(1, 6):
        place(tmp_path / f"S{part}.txt", query(f"S{part}"))
    splits = load_public("mq2008", tmp_path, fold)
    assert ids(splits) == expected
    assert splits.train.offsets.tolist() == [0, 2, 4, 6]
    assert splits.train.features[:, :2].tolist() == [[0.5, 0], [0, 0.25]] * 3


def test_a_single_file_is_split_by_query_alike_every_time(tmp_path):
    place(tmp_path / "mq2007_85pct.txt", "".join(query(i) for i in range(500)), ".zst")
    tests = []
    for fold in range(1, 6):
        train, valid, test = ids(load_public("mq2007", tmp_path, fold))
        assert sorted(train + valid + test, key=int) == [str(i) for i in range(500)]
        assert 60 <= len(test) <= 140
        tests += test
    assert sorted(tests, key=int) == [str(i) for i in range(500)]
    assert ids(load_public("mq2007", tmp_path, 1))[2][:5] == ["4", "6", "13", "32", "41"]


def test_the_sign_for_no_value_in_istella_is_read_as_zero(tmp_path):
    for file in FILES["istella-s"].split():
        place(tmp_path / file, "1 qid:1 1:1.79769313486e+308 2:3\n")
    assert load_public("istella-s", tmp_path).train.features[0, :3].tolist() == [0, 3, 0]


def test_the_same_value_in_another_set_is_an_error(tmp_path):
    for file in FILES["yahoo-set1"].split():
        place(tmp_path / file, "1 qid:1 1:1.79769313486e+308 2:3\n")
    with pytest.raises(DataError, match=r"set1.train.txt:1: found 1.79769313486e\+308"):
        load_public("yahoo-set1", tmp_path)


def sentence_of(error, *arguments):
    with pytest.raises(error) as caught:
        load_public(*arguments)
    return str(caught.value)


def test_what_is_missing_is_listed(tmp_path):
    place(tmp_path / "set1.train.txt", query(1))
    assert sentence_of(DataError, "mq2008", tmp_path, 2) == (
        f"{tmp_path}: the files of mq2008 are not all there; looked for Fold2/train.txt, "
        "Fold2/vali.txt, Fold2/test.txt, S1.txt, S2.txt, S3.txt, S4.txt, S5.txt (also with .gz "
        "or .zst) there and in MQ2008, letor_mq2008"
    )
    assert "looked for set1.valid.txt, set1.test.txt" in sentence_of(
        DataError, "yahoo-set1", tmp_path
    )
    assert sentence_of(DataError, "mq2008", tmp_path / "nowhere") == (
        f"{tmp_path / 'nowhere'}: there is no such folder; "
        "expected the one that mq2008 was unpacked to"
    )
    assert sentence_of(SettingsError, "mq2009", tmp_path) == (
        "there is no public set 'mq2009'; expected one of "
        "yahoo-set1, mslr-web10k, mslr-web30k, istella-s, mq2007, mq2008"
    )
    assert sentence_of(SettingsError, "mq2008", tmp_path, 6) == (
        "the fold of mq2008 is 6; expected 1 to 5"
    )
    assert sentence_of(SettingsError, "istella-s", tmp_path, 2) == (
        "the fold of istella-s is 2; expected 1"
    )


def test_a_line_that_does_not_fit_the_set_is_named(tmp_path):
    for file in FILES["mq2008"].split():
        place(tmp_path / file, "1 qid:1 47:1\n")
    assert sentence_of(DataError, "mq2008", tmp_path) == (
        f"{tmp_path}/Fold1/train.txt:1: found feature 47; expected indices from 1 to 46"
    )


@pytest.fixture
def real_data():
    """The folder with real data sets that are not part of the project."""
    if "DUALRANK_DATA" not in os.environ:
        pytest.skip("set DUALRANK_DATA to a folder with letor_mq2007 and letor_mq2008")
    return Path(os.environ["DUALRANK_DATA"])


def test_mq2008_is_read_whole(real_data, tmp_path):
    folds = [load_public("mq2008", real_data, fold, cache=tmp_path) for fold in range(1, 6)]
    whole = concatenate([fold.test for fold in folds])
    assert (len(whole), whole.document_count, whole.feature_count) == (784, 15_211, 46)
    assert np.bincount(whole.grades.astype(int)).tolist() == [12_279, 2_001, 931]
    assert whole.doc_ids[whole.query_of_document == 0][0].startswith("GX")
    for fold in folds:
        assert len(fold.train) + len(fold.valid) + len(fold.test) == 784


def test_mq2007_is_read_whole(real_data, tmp_path):
    splits = load_public("mq2007", real_data, cache=tmp_path)
    whole = concatenate([splits.train, splits.valid, splits.test])
    assert (len(whole), whole.document_count, whole.feature_count) == (1_692, 59_135, 46)
    assert np.bincount(whole.grades.astype(int)).tolist() == [43_857, 11_994, 3_284]


def test_mq2008_agrees_with_scikit_learn(real_data, tmp_path):
    from sklearn.datasets import load_svmlight_file

    packed = real_data / "letor_mq2008" / "S1.txt.zst"
    plain = tmp_path / "S1.txt"
    with packed.open("rb") as source, plain.open("wb") as target:
        zstandard.ZstdDecompressor().copy_stream(source, target)
    matrix, grades, qids = load_svmlight_file(str(plain), query_id=True)
    data = read_letor(packed, cache=tmp_path)
    assert np.array_equal(data.features, matrix.toarray().astype(np.float32))
    assert np.array_equal(data.grades, grades)
    assert np.array_equal(data.query_ids[data.query_of_document].astype(int), qids)
