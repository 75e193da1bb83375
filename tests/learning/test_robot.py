"""A robot that always clicks the last result bends the learned curve, unless it is left out."""

import numpy as np
import pyarrow as pa

from dualrank.clicks.position_based import PositionBasedUser
from dualrank.clicks.sampling import sample_log
from dualrank.data.generator import World, with_document_ids
from dualrank.data.lists import top_lists
from dualrank.data.log.read_log import read_log
from dualrank.learning.fit import fit
from dualrank.rankers.network import Linear
from dualrank.settings import TrainingSettings


def test_the_filters_keep_the_learned_curve():
    data = with_document_ids(World(8).generate(60, seed=0))
    lists = top_lists(data, data.features[:, 0], depth=5)
    people = sample_log(data, lists, PositionBasedUser(), 4_000, seed=0).to_table()
    clicks = int(np.sum(people["clicked"].to_numpy(zero_copy_only=False)))
    last = pa.compute.equal(people["position"], 5)
    shown = people.filter(last)["session_id"].unique()[: clicks // 9]
    robot = people.filter(pa.compute.is_in(people["session_id"], shown))
    robot = robot.set_column(0, "session_id", pa.compute.add(robot["session_id"], 1_000_000))
    robot = robot.set_column(4, "clicked", pa.compute.equal(robot["position"], 5))
    both = pa.concat_tables([people, robot]).append_column(
        "client_id",
        pa.array([str(i) for i in people["session_id"].to_pylist()] + ["robot"] * len(robot)),
    )

    def curve(log):
        settings = TrainingSettings(steps=150, batch_size=64)
        model = fit(log, data, ranker=Linear(), validation=0.0, settings=settings)
        return model.propensity.examination

    filtered = read_log(both, data, max_client_share=0.01)
    (named, *_) = filtered.reading.clients
    assert named.name == "robot"
    assert named.left_out
    assert 0.09 < named.share_of_clicks < 0.11
    truth = curve(read_log(people, data))
    assert np.max(np.abs(curve(filtered) / truth - 1)) < 0.05
    assert np.max(np.abs(curve(read_log(both, data)) / truth - 1)) > 0.2
