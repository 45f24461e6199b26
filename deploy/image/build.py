"""Building the image with buildah: the base, where it is made here, and the image itself.

Nothing runs as a service: buildah is one program, and changes its root folder for the steps of a build (`chroot`), so
this works inside containers and small virtual machines too. Images are in the storage that podman and buildah share.
"""

from __future__ import annotations

import hashlib
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import filelock

from deploy.image import debian
from deploy.image.wheels import fetch_wheels
from deploy.local.commands import install_package, run
from deploy.local.fetch import fetch
from pipelines.engines.cache import FILES, engine_path, engines_folder
from schemas.errors import ConfigError

LOCAL, BEAM = "local", "beam"
"""Bases: made on this machine, or the Containerfile's own, which a registry has."""

_HERE = Path(__file__).parent
_BASE_FILES = ("base.Containerfile", "no_launcher.sh")
_WHEELS = "/wheels"
_HINT = "on Debian or Ubuntu: apt-get install buildah"


def build_image(
    context: Path,
    *,
    tag: str,
    base: str = LOCAL,
    launcher: str | None = None,
    snapshot: bool = False,
    say: Callable[[str], None] = print,
) -> None:
    """Build the image of the workers.

    Args:
        context: What `make dataflow-context` gathered.
        tag: The name that the image gets.
        base: `LOCAL`, `BEAM` or the name of an image.
        launcher: The image that Google's template launcher is copied from; by default that of the Containerfile, and
            with a base made here none.
        snapshot: Make the base from Debian's archive of the lock's moment.
        say: Told what is done, a line each.

    Raises:
        ConfigError: If a tool is missing or fails, or this machine is no x86-64.
        IntegrityError: If Debian's archive has other packages than are written down.
    """
    if platform.machine() != "x86_64":
        raise ConfigError(f"the image is for x86-64, and this machine is {platform.machine()}; build it on another one")
    context, cache = context.absolute(), image_folder()
    cache.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(cache / ".lock"):
        install_package("buildah", log_folder=cache, say=say)
        if base == LOCAL:
            base = make_base(cache, snapshot=snapshot, say=say)
            launcher = launcher or base
        say("Fetching the packages of the image")
        wheels = fetch_wheels(context / "requirements.lock", cache)
        say(f"Building {tag} (about two minutes)")
        arguments = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": _WHEELS}
        arguments |= {} if base == BEAM else {"BASE": base}
        arguments |= {"LAUNCHER": launcher} if launcher else {}
        _build(context, tag, log=cache / "image.log", arguments=arguments, volumes=[f"{wheels}:{_WHEELS}:ro"])
    say(f"{tag}: {image_size(tag)}")


def make_base(cache: Path, *, snapshot: bool = False, say: Callable[[str], None] = print) -> str:
    """Return the name of the base that is made on this machine; made, unless it is there already.

    Args:
        cache: Where it is gathered, and logs go.
        snapshot: Take Debian's archive of the lock's moment.
        say: Told what is done, a line each.

    Raises:
        ConfigError: If a tool is missing or fails.
        IntegrityError: If Debian's archive has other packages than are written down.
    """
    name = f"localhost/cppmill-base:{_base_key()}"
    if _exists(name):
        say(f"{name}: made already")
        return name
    install_package("mmdebstrap", log_folder=cache, say=say)
    fetch(["boot"], say=say)
    say(f"Making {name} from Debian's archive (about two minutes)")
    with tempfile.TemporaryDirectory(prefix="base-", dir=cache) as scratch:
        context = Path(scratch)
        _, packages = debian.make_root(context, snapshot=snapshot)
        debian.check_packages(packages)
        for file in _BASE_FILES:
            shutil.copy(_HERE / file, context)
        shutil.copy(engine_path("boot"), context)
        _build(context, name, log=cache / "base.log", file="base.Containerfile")
    return name


def write_debian_lock() -> None:
    """Write the versions that Debian's archive has now to `debian.lock`.

    Raises:
        ConfigError: If mmdebstrap is missing or fails.
    """
    cache = image_folder()
    cache.mkdir(parents=True, exist_ok=True)
    install_package("mmdebstrap", log_folder=cache)
    with tempfile.TemporaryDirectory(prefix="base-", dir=cache) as scratch:
        debian.write_lock(debian.make_root(Path(scratch))[1])


def image_folder() -> Path:
    """Return the cache of what images are built from, beside that of the engines."""
    return engines_folder().parent / "image"


def image_size(name: str) -> str:
    """Return the size of an image, as buildah writes it."""
    command = ["buildah", "images", "--format", "{{.Size}}", name]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _base_key() -> str:
    """Return the digest of what decides the base."""
    text = [debian.LOCK.read_text(), *(_HERE.joinpath(file).read_text() for file in _BASE_FILES)]
    return hashlib.sha256("\0".join([*text, *debian.options(), FILES["boot"]]).encode()).hexdigest()[:12]


def _exists(image: str) -> bool:
    return subprocess.run(["buildah", "inspect", "--type", "image", image], capture_output=True).returncode == 0


def _build(
    context: Path,
    tag: str,
    *,
    log: Path,
    file: str = "Containerfile",
    arguments: dict[str, str] | None = None,
    volumes: list[str] | None = None,
) -> None:
    command = [
        "buildah",
        "build",
        "--isolation",
        "chroot",
        "--layers",
        "--force-rm",
        "--tag",
        tag,
        "--file",
        str(context / file),
    ]
    command += [f"--build-arg={name}={value}" for name, value in (arguments or {}).items()]
    command += [f"--volume={volume}" for volume in volumes or []]
    run([*command, str(context)], cwd=context, log=log, hint=_HINT)
