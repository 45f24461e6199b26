"""Every kind of count has a name and a file of its own."""

import pytest

from transforms.scan.kinds import Family, Kind, count_kinds, part_family, part_path


@pytest.mark.parametrize(("lines", "files"), [(False, 20), (True, 36)])
def test_every_kind_has_a_file_of_its_own(lines, files):
    kinds = list(count_kinds(word_partitions=16, lines=lines))
    assert len({kind.merged_path for kind in kinds}) == len(kinds) == files


def test_a_name_is_read_back():
    for kind in count_kinds(word_partitions=16, lines=True):
        assert Kind.parse(kind.name) == kind


def test_the_file_of_a_part_names_its_family():
    assert [part_family(part_path(family, "0" * 64)) for family in Family] == list(Family)
