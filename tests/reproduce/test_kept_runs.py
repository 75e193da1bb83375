"""An interrupted experiment goes on with the rows that are missing."""

from dataclasses import replace

import numpy as np
import pytest

from dualrank.reproduce.kept_runs import KeptRuns
from dualrank.reproduce.oracle_mode import OracleMode, run_oracle_mode


@pytest.fixture
def experiment():
    tiny = OracleMode.preset("tiny")
    recipe = replace(tiny.recipe, training=replace(tiny.recipe.training, steps=20))
    return replace(tiny, recipe=recipe, seeds=(0,), methods=("dla", "naive", "initial"))


def without_seconds(results):
    content = results.model_dump()
    for run in content["runs"]:
        del run["seconds"]
    return content


def test_an_interrupted_experiment_ends_like_one_that_was_not(experiment, tmp_path):
    count = 0

    def interrupt():
        nonlocal count
        count += 1
        if count == 2:
            raise KeyboardInterrupt

    kept = KeptRuns(tmp_path / "unfinished")
    with pytest.raises(KeyboardInterrupt):
        run_oracle_mode(experiment, finished=interrupt, kept=kept)
    assert len(list((tmp_path / "unfinished").iterdir())) == 2
    trained_again = []
    resumed = run_oracle_mode(
        experiment, kept=kept, report=lambda index, done, total: trained_again.append(index)
    )
    assert trained_again == []  # dla and naive were kept, the initial ranker takes no steps
    assert without_seconds(resumed) == without_seconds(run_oracle_mode(experiment))
    kept.clear()
    assert not (tmp_path / "unfinished").exists()


def test_another_setting_or_a_damaged_file_is_trained_anew(experiment, tmp_path):
    kept = KeptRuns(tmp_path)
    run_oracle_mode(experiment, kept=kept)
    task = experiment.tasks[0]
    assert kept.find(task) is not None
    other = replace(task, recipe=replace(task.recipe, C=1.0))
    assert kept.find(other) is None
    for path in tmp_path.iterdir():
        path.write_bytes(path.read_bytes()[:-40])
    assert kept.find(task) is None


def test_what_is_kept_is_what_was_trained(experiment, tmp_path):
    kept = KeptRuns(tmp_path)
    results = run_oracle_mode(experiment, kept=kept)
    found = kept.find(experiment.tasks[0])
    assert found.run == results.runs[0]
    assert found.sizes.queries == {"train": 600, "valid": 150, "test": 300}
    mean = float(np.mean(found.per_query["ndcg@10"]))
    assert mean == pytest.approx(results.runs[0].metrics["ndcg@10"])
