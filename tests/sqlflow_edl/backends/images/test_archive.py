"""An image that is packed without a builder: what is in the archive, and under which names."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import tarfile
from pathlib import Path
from typing import Any

import msgspec
import pytest

from edl.build import Build, read_build
from edl.errors import SemanticError
from sqlflow_edl.backends.images.archive import NEEDED, pack
from sqlflow_edl.backends.images.registry import LABEL
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.main import main


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A file system as small as one can be that is taken."""
    folder = tmp_path / "root"
    for path in (*NEEDED, "etc/passwd", "tmp/left", "proc/1/stat", "var/lib/apt/lists/left"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(path)
    (folder / NEEDED[0]).chmod(0o755)
    (folder / "bin").symlink_to("usr/bin")
    os.link(folder / "etc/passwd", folder / "etc/passwd-")
    return folder


class Archive:
    def __init__(self, path: Path) -> None:
        with tarfile.open(path) as tar:
            self._files = {entry.name: file.read() for entry in tar if (file := tar.extractfile(entry))}

    def json(self, name: str) -> Any:
        return json.loads(self._files[name])

    def blob(self, described: dict[str, Any]) -> bytes:
        """Read the content that a descriptor names, and check that it is as described."""
        data = self._files["blobs/" + described["digest"].replace(":", "/")]
        assert len(data) == described["size"]
        assert f"sha256:{hashlib.sha256(data).hexdigest()}" == described["digest"]
        return data


@pytest.fixture
def archive(root: Path, tmp_path: Path) -> Archive:
    path = tmp_path / "image.tar"
    pack(root, "team/models:1", path)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["image.tar", "root"]
    return Archive(path)


def entries_of(archive: Archive) -> dict[str, tarfile.TarInfo]:
    """The files and folders in the layer, by their names."""
    manifest = json.loads(archive.blob(archive.json("index.json")["manifests"][0]))
    with tarfile.open(fileobj=io.BytesIO(archive.blob(manifest["layers"][0]))) as tar:
        return {entry.name: entry for entry in tar}


def test_its_layer_has_all_files_but_the_running_systems(archive: Archive) -> None:
    [described] = archive.json("index.json")["manifests"]
    manifest = json.loads(archive.blob(described))
    [layer] = manifest["layers"]
    entries = entries_of(archive)
    assert {"bin", "etc", "etc/passwd", "etc/passwd-", "proc", "tmp", *NEEDED} <= entries.keys()
    assert "var/lib/apt/lists" in entries
    assert not {"tmp/left", "proc/1", "proc/1/stat", "var/lib/apt/lists/left"} & entries.keys()
    assert entries["bin"].linkname == "usr/bin"
    assert entries["etc/passwd-"].islnk()
    assert entries[NEEDED[0]].mode == 0o755
    config = json.loads(archive.blob(manifest["config"]))
    assert config["rootfs"]["diff_ids"] == [layer["digest"]]


def test_translations_and_manuals_stay_out_and_licences_do_not(root: Path, tmp_path: Path) -> None:
    left_out = {"usr/share/locale/de/apt.mo", "usr/share/man/man1/tar.1.gz", "usr/share/i18n/locales/de_DE"}
    kept = {"usr/share/doc/tar/copyright", "usr/lib/locale/C.utf8/LC_CTYPE"}
    for path in left_out | kept:
        (root / path).parent.mkdir(parents=True)
        (root / path).write_text(path)
    pack(root, "models:1", tmp_path / "image.tar")
    entries = entries_of(Archive(tmp_path / "image.tar"))
    assert kept | {"usr/share/locale", "usr/share/man"} <= entries.keys()
    assert not left_out & entries.keys()


def test_what_is_mounted_in_the_folder_stays_out(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "opt/wheels").mkdir()
    (root / "opt/wheels/large.whl").write_text("of the machine")
    monkeypatch.setattr(os.path, "ismount", lambda path: Path(path) == root / "opt/wheels")
    pack(root, "models:1", tmp_path / "image.tar")
    names = entries_of(Archive(tmp_path / "image.tar"))
    assert "opt/wheels" in names
    assert "opt/wheels/large.whl" not in names


def test_loaders_of_either_kind_find_its_name(archive: Archive) -> None:
    [described] = archive.json("index.json")["manifests"]
    assert described["annotations"] == {
        "io.containerd.image.name": "docker.io/team/models:1",
        "org.opencontainers.image.ref.name": "team/models:1",
    }
    manifest = json.loads(archive.blob(described))
    [saved] = archive.json("manifest.json")
    assert saved["RepoTags"] == ["team/models:1"]
    assert saved["Config"] == "blobs/" + manifest["config"]["digest"].replace(":", "/")
    assert saved["Layers"] == ["blobs/" + each["digest"].replace(":", "/") for each in manifest["layers"]]


def test_its_settings_equal_the_dockerfiles(archive: Archive, repository: Path) -> None:
    [saved] = archive.json("manifest.json")
    settings = archive.json(saved["Config"])["config"]
    text = (repository / "runtime" / "Dockerfile").read_text()
    assert re.search(rf"^USER {settings['User']}$", text, re.MULTILINE)
    assert re.search(rf"^WORKDIR {settings['WorkingDir']}$", text, re.MULTILINE)
    assert settings["Labels"] == {}  # the code of this one does not tell its build
    path, *others = settings["Env"]
    assert all(each in text for each in others)
    assert path.startswith("PATH=/opt/edl/bin:/")


@pytest.mark.parametrize(
    ("tag", "name"),
    [
        ("models", "docker.io/library/models:latest"),
        ("registry.example:5000/team/models:2", "registry.example:5000/team/models:2"),
        ("localhost/models:2", "localhost/models:2"),
    ],
)
def test_nodes_look_it_up_under_its_whole_name(root: Path, tmp_path: Path, tag: str, name: str) -> None:
    pack(root, tag, tmp_path / "image.tar")
    [described] = Archive(tmp_path / "image.tar").json("index.json")["manifests"]
    assert described["annotations"]["io.containerd.image.name"] == name


def test_a_folder_without_the_runtime_is_refused_and_leaves_nothing(root: Path, tmp_path: Path) -> None:
    (root / NEEDED[1]).unlink()
    with pytest.raises(SemanticError, match=f"has no {NEEDED[1]}") as raised:
        pack(root, "m:1", tmp_path / "image.tar")
    assert "sqlflow help images" in (raised.value.hint or "")
    assert [each.name for each in tmp_path.iterdir()] == ["root"]


def test_it_cannot_hold_itself_and_needs_a_name(root: Path, tmp_path: Path) -> None:
    with pytest.raises(SemanticError, match="which it is to hold"):
        pack(root, "m:1", root / "image.tar")
    with pytest.raises(SemanticError, match="cannot name an image"):
        pack(root, "m 1", tmp_path / "image.tar")


def test_the_command_says_what_it_made(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "image.tar"
    assert main(["image", "pack", str(root), "--tag", "m:1", "--output", str(file)]) == exit_codes.OK
    assert capsys.readouterr().err == f"{file}: m:1, 0 MB\n"
    assert main(["image", "pack", str(tmp_path), "-t", "m:1", "-o", str(file)]) == exit_codes.FAILED
    assert "has no opt/edl/bin/python" in capsys.readouterr().err


def test_its_label_tells_the_build_of_its_code(root: Path, tmp_path: Path) -> None:
    code = root / "opt/edl/code/edl"
    (code / "installation.py").write_text('VERSION = "0.2.0"\n')
    (code / "build.py").write_text("PROTOCOL = 7\n")
    pack(root, "models:1", tmp_path / "image.tar")
    packed = Archive(tmp_path / "image.tar")
    [saved] = packed.json("manifest.json")
    build = msgspec.json.decode(packed.json(saved["Config"])["config"]["Labels"][LABEL], type=Build)
    assert build == read_build(code)
