"""An interrupted experiment goes on with the rows that are missing."""

from dataclasses import replace

import numpy as np
import pytest

from dualrank.errors import SettingsError
from dualrank.reproduce.kept_runs import KeptRuns
from dualrank.reproduce.oracle_mode import OracleMode
from dualrank.reproduce.runner import run, run_tasks
from dualrank.storage import writing_alone


@pytest.fixture
def experiment():
    return OracleMode(preset="tiny", steps=20, seeds=1, methods=("dla", "naive", "initial"))


def without_seconds(finished):
    content = finished.results["results"].model_dump()
    for each in content["runs"]:
        del each["seconds"]
    return content


def test_an_interrupted_experiment_ends_like_one_that_was_not(experiment, tmp_path):
    count = 0

    def interrupt():
        nonlocal count
        count += 1
        if count == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(experiment, tmp_path, finished=interrupt)
    assert len(list((tmp_path / "unfinished").iterdir())) == 2
    trained_again = []
    resumed = run(
        experiment, tmp_path, report=lambda index, done, total: trained_again.append(index)
    )
    assert trained_again == []  # dla and naive were kept, the initial ranker takes no steps
    assert without_seconds(resumed) == without_seconds(run(experiment))
    assert not (tmp_path / "unfinished").exists()


def test_another_setting_or_a_damaged_file_is_trained_anew(experiment, tmp_path):
    kept = KeptRuns(tmp_path)
    run_tasks(experiment.tasks(), kept=kept)
    task = experiment.tasks()[0]
    assert kept.find(task) is not None
    assert kept.find(replace(task, experiment=replace(experiment, C=1.0))) is None
    for path in tmp_path.iterdir():
        path.write_bytes(path.read_bytes()[:-40])
    assert kept.find(task) is None


def test_more_seeds_and_fewer_methods_find_what_was_done(experiment, tmp_path):
    kept = KeptRuns(tmp_path)
    run_tasks(experiment.tasks()[:1], kept=kept)
    other = replace(experiment, seeds=3, methods=("dla",))
    assert [kept.find(task) is not None for task in other.tasks()] == [True, False, False]


def test_what_is_kept_is_what_was_trained(experiment, tmp_path):
    kept = KeptRuns(tmp_path)
    trained = run_tasks(experiment.tasks(), kept=kept)
    (found,) = kept.find(experiment.tasks()[0])
    assert found.run == trained[0].run
    assert found.sizes["queries"] == {"train": 600, "valid": 150, "test": 300}
    for metric, values in found.per_query.items():
        assert values.shape == (300,)
        assert np.mean(values) == pytest.approx(found.run.metrics[metric])


def test_a_damaged_file_is_never_more_than_work_to_do_again(experiment, tmp_path):
    kept, task = KeptRuns(tmp_path), experiment.tasks()[0]
    trained = run_tasks([task], kept=kept)
    (path,) = tmp_path.iterdir()
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    for _ in range(200):
        damaged = bytearray(whole)
        for place in rng.integers(len(whole), size=rng.integers(1, 4)):
            damaged[place] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        found = kept.find(task)
        assert found is None or found[0].run == trained[0].run


def test_two_experiments_do_not_write_into_one_directory(experiment, tmp_path):
    with writing_alone(tmp_path), pytest.raises(SettingsError, match="is writing here"):
        run(experiment, tmp_path)
