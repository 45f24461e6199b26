import hashlib
from pathlib import Path

import pytest

from deploy.local import jars
from deploy.local.jars import check_jars, format_jars, included_jars
from schemas.errors import IntegrityError


def test_the_jars_of_a_shaded_one_are_read_from_the_log():
    log = (
        "[INFO] Including io.netty:netty-transport-native-epoll:jar:linux-x86_64:4.1.100.Final in the shaded jar.\n"
        "[INFO] Including args4j:args4j:jar:2.33 in the shaded jar.\n"
        "[INFO] Excluding org.slf4j:slf4j-api:jar:1.7.30 from the shaded jar.\n"
    )
    netty = "io/netty/netty-transport-native-epoll/4.1.100.Final"
    assert included_jars(log, Path("/m2")) == {
        "io.netty:netty-transport-native-epoll:jar:linux-x86_64:4.1.100.Final": Path("/m2")
        / netty
        / "netty-transport-native-epoll-4.1.100.Final-linux-x86_64.jar",
        "args4j:args4j:jar:2.33": Path("/m2/args4j/args4j/2.33/args4j-2.33.jar"),
    }


@pytest.fixture
def listed(tmp_path, monkeypatch):
    """Two jars, and the written list that names them."""
    found = {}
    for name in ("one", "two"):
        found[f"g:{name}:jar:1"] = tmp_path / name
        (tmp_path / name).write_text(name)
    monkeypatch.setattr(jars, "_HERE", tmp_path)
    (tmp_path / "some_jars.sha256").write_text(format_jars(found))
    return found


def test_listed_jars_pass(listed):
    check_jars("some", listed)


def test_a_changed_jar_is_refused_with_both_digests(listed):
    was = hashlib.sha256(b"two").hexdigest()
    listed["g:two:jar:1"].write_text("other")
    with pytest.raises(IntegrityError, match=f"g:two:jar:1 has {was}, and {hashlib.sha256(b'other').hexdigest()}"):
        check_jars("some", listed)


def test_a_missing_jar_is_refused(listed):
    del listed["g:one:jar:1"]
    with pytest.raises(IntegrityError, match="g:one:jar:1 .* None was fetched"):
        check_jars("some", listed)


def test_an_additional_jar_is_refused(listed):
    with pytest.raises(IntegrityError, match="g:three:jar:1 has None"):
        check_jars("some", listed | {"g:three:jar:1": listed["g:one:jar:1"]})


@pytest.mark.parametrize("name", ["flink", "spark"])
def test_a_pom_has_its_list(name, repository):
    lines = (repository / f"deploy/local/{name}_jars.sha256").read_text().splitlines()
    assert any(f"org.apache.beam:beam-runners-{name}" in line for line in lines)
    assert (repository / f"deploy/local/{name}_job_server.pom.xml").is_file()
