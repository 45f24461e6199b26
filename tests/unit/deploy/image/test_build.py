"""What buildah is asked for: the base that was chosen, packages from the cache, no index."""

import platform

import pytest

from deploy.image import build as building
from deploy.image import debian
from deploy.image.__main__ import main
from schemas.errors import ConfigError


@pytest.fixture
def made(tmp_path, monkeypatch):
    """What was made beside the image: wheels, the base's root, Beam's entry point."""
    monkeypatch.setenv("CPPMILL_ENGINES", str(tmp_path / "cache/engines"))
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    names = []

    def root(folder, *, snapshot=False):
        names.append("snapshot" if snapshot else "root")
        return folder / "rootfs.tar", debian.read_lock()[1]

    def fetch(fetched, **_):
        names.extend(fetched)
        path = tmp_path / "cache/engines/boot-2.77.0/boot"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    monkeypatch.setattr(building.debian, "make_root", root)
    monkeypatch.setattr(building, "fetch", fetch)
    monkeypatch.setattr(building, "install_package", lambda name, **_: names.append(name))
    monkeypatch.setattr(building, "fetch_wheels", lambda lock, cache: cache / "wheels")
    return names


@pytest.fixture
def context(tmp_path):
    """A folder as `make dataflow-context` leaves it."""
    folder = tmp_path / "context"
    folder.mkdir()
    return folder


def arguments(call):
    return dict(word.removeprefix("--build-arg=").split("=", 1) for word in call if word.startswith("--build-arg="))


def test_the_image_is_built_on_a_base_that_is_made_here(made, context, buildah, capsys, monkeypatch):
    monkeypatch.chdir(context.parent)
    assert main(["build", context.name, "--tag", "worker"]) == 0
    assert made == ["buildah", "mmdebstrap", "boot", "root"]
    base, image = [call for call in buildah.calls if call[0] == "build"]
    name = base[base.index("--tag") + 1]
    assert name.startswith("localhost/cppmill-base:")
    assert arguments(image) == {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "/wheels", "BASE": name, "LAUNCHER": name}
    assert [word for word in image if word.startswith("--volume=")][0].endswith("/wheels:/wheels:ro")
    assert image[-1] == str(context)  # buildah is started elsewhere
    assert capsys.readouterr().out.splitlines()[-1] == "worker: 1.2 GB"


def test_a_base_that_was_made_before_is_used_again(made, context, buildah):
    main(["build", str(context), "--tag", "worker"])
    base = next(call for call in buildah.calls if call[0] == "build")
    path = buildah.images / base[base.index("--tag") + 1]
    path.parent.mkdir()
    path.touch()
    made.clear()
    assert main(["build", str(context), "--tag", "worker"]) == 0
    assert made == ["buildah"]


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--base", "beam"], {}),
        (["--base", "registry/base"], {"BASE": "registry/base"}),
        (["--base", "registry/base", "--launcher", "one"], {"BASE": "registry/base", "LAUNCHER": "one"}),
    ],
)
def test_another_base_is_taken_as_it_is(made, context, buildah, flags, expected):
    assert main(["build", str(context), "--tag", "worker", *flags]) == 0
    [image] = [call for call in buildah.calls if call[0] == "build"]
    assert arguments(image) == {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "/wheels", **expected}
    assert made == ["buildah"]


def test_the_base_is_made_of_a_snapshot_if_that_is_asked_for(made, context, buildah):
    assert main(["build", str(context), "--tag", "worker", "--snapshot"]) == 0
    assert made[-1] == "snapshot"


def test_a_base_with_other_packages_is_not_built(made, context, buildah, monkeypatch, capsys):
    monkeypatch.setattr(building.debian, "make_root", lambda folder, **_: (folder / "rootfs.tar", {"bash": "1"}))
    assert main(["build", str(context), "--tag", "worker"]) == 2
    assert "debian.lock" in capsys.readouterr().err
    assert not [call for call in buildah.calls if call[0] == "build"]


def test_another_kind_of_machine_is_refused(made, context, monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    with pytest.raises(ConfigError, match="aarch64"):
        building.build_image(context, tag="worker")
    assert made == []
