"""The file of weights: what it says, and what is wrong with it, all at once."""

import pytest

from configs.mixtures import read_mixture
from schemas.errors import ConfigError


def test_weights_keep_the_order_of_the_file(tmp_path):
    file = tmp_path / "weights.toml"
    file.write_text('default = 0.5\n[projects]\nllvm = 2\n"boost*" = 1.5\nboost = 0\n')
    assert read_mixture(file) == (0.5, (("llvm", 2.0), ("boost*", 1.5), ("boost", 0.0)))
    file.write_text("")
    assert read_mixture(file) == (1.0, ())


def test_every_problem_is_reported(tmp_path):
    file = tmp_path / "weights.toml"
    file.write_text('default = true\nweights = 1\n[projects]\nllvm = -1\nboost = "2"\nabseil = 101\nfmt = 3\n')
    with pytest.raises(ConfigError) as caught:
        read_mixture(file)
    said = str(caught.value).splitlines()
    named = ("weights: unknown key", "default = true", "projects.llvm = -1", "projects.boost", "projects.abseil = 101")
    assert len(said) == len(named)
    assert all(name in line for name, line in zip(named, said, strict=True))


@pytest.mark.parametrize(
    ("text", "message"), [("projects = 1", "is a table"), ("[", "weights.toml"), (None, "No such")]
)
def test_a_missing_file_is_refused(tmp_path, text, message):
    file = tmp_path / "weights.toml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_mixture(file)
