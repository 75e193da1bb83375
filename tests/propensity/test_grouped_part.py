"""Parts of a log, counted by the groups of the whole."""

import numpy as np
import pytest

from dualrank.propensity.grouped_clicks import GroupedClicks


@pytest.mark.parametrize("over", ["queries", "sessions"])
def test_parts_add_up_to_the_whole(world, over):
    log = world(queries=60).of_several_rankers(5_000)
    whole = GroupedClicks.of(log, over)
    rows = np.arange(len(log.counts))
    parts = [whole.part(log.take_rows(np.flatnonzero(rows % 2 == side))) for side in (0, 1)]
    for part in parts:
        assert part.over == over
    np.testing.assert_array_equal(sum(part.impressions for part in parts), whole.impressions)
    if over == "queries":
        sums = [each.sum_by_group(each.clicks) for each in (*parts, whole)]
        np.testing.assert_array_equal(sums[0] + sums[1], sums[2])
