"""Places that programs name: no message of the library shows a password."""

import pytest

import cppmill

SECRETS = [
    "s3://me:se cret@host/x",
    "https://se cret@host/x",
    "sftp://me:secret@host/x",
    "https://host/x?token=se cret",
]


@pytest.mark.parametrize("url", SECRETS)
def test_a_password_is_in_no_error(url, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    calls = (
        lambda: cppmill.verify(url),
        lambda: cppmill.verify(out, run=url),
        lambda: cppmill.open_run(url),
        lambda: cppmill.retokenize(tmp_path, store=url),
        lambda: cppmill.run(tmp_path, out=url),
    )
    for call in calls:
        with pytest.raises(cppmill.CppmillError) as found:
            call()
        assert "cret" not in str(found.value)
