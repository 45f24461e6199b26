"""The map of a vocabulary: a point an id, in the colour of its band."""

import base64
import io

import numpy as np
import pytest
from matplotlib.image import imread

from pipelines.report.vocabulary_map import COLOURS, colour_ids, draw_map
from tokenizer_build.bands import BANDS, Strength
from tokenizer_build.compare.origins import LEARNED, RESERVED, SUPERWORDS


def test_every_band_has_a_colour_of_its_own():
    named = {band.name for band in BANDS if band.strength is not Strength.RESERVED}
    assert named | {LEARNED, SUPERWORDS, RESERVED} == set(COLOURS)
    assert len(set(COLOURS.values())) == len(COLOURS)


def test_used_ids_are_stronger_than_unused_ones():
    colours = colour_ids(np.array([0, 1, 1000]), ["library", "library", "learned"])
    assert colours[0, :3].tolist() == colours[1, :3].tolist() != colours[2, :3].tolist()
    assert colours[0, 3] < colours[1, 3] < colours[2, 3] == 255


@pytest.mark.parametrize(("ids", "columns", "rows"), [(700, 256, 3), (65_536, 512, 128)])
def test_the_picture_has_the_ids_in_rows(ids, columns, rows):
    counts = np.arange(ids)
    bands = ["learned" if i % 2 else "library" for i in range(ids)]
    found = draw_map(counts, bands)
    assert (found.columns, found.rows) == (columns, rows)
    kind, _, text = found.url.partition(",")
    assert kind == "data:image/png;base64"
    points = np.round(255 * imread(io.BytesIO(base64.b64decode(text)))).astype(np.uint8).reshape(-1, 4)
    assert np.array_equal(points[:ids], colour_ids(counts, bands))
    assert not points[ids:].any()
