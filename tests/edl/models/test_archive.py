"""Archives: what goes in comes out, the same model is the same bytes, and nothing hostile gets through."""

from __future__ import annotations

import io
import json
import warnings
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from edl.errors import SpecError
from edl.jobs.trials import Trial
from edl.models import archive as archive_module
from edl.models.archive import FORMAT, program_files, read_archive
from edl.spec import Calibration, Residuals, to_json
from edl.spec.calibration import Threshold
from edl.spec.residuals import ColumnWidths, ScaledErrors, Widths

Write = Callable[..., Path]


def members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewritten(
    path: Path, changes: dict[str, bytes | None], *, compression: int = zipfile.ZIP_STORED
) -> bytes:
    """The archive with some members changed, added, or, where None, left out."""
    contents = {name: data for name, data in (members(path) | changes).items() if data is not None}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.comment = FORMAT
        for name, data in contents.items():
            changed = name in changes
            archive.writestr(zipfile.ZipInfo(name), data, compression if changed else zipfile.ZIP_STORED)
    return buffer.getvalue()


def test_everything_of_a_model_comes_back(archive: Path) -> None:
    for read in (read_archive(archive), read_archive(archive.read_bytes())):
        assert read.spec.statement.endswith("größe.m")
        assert read.program["vocabulary/f0.txt"].decode() == "å\n表\n"
        assert read.metrics == {"rmse": 0.25, "auc": None}
        assert read.curve == ({"epoch": 1, "loss": 0.5}, {"epoch": 2, "loss": None})
        assert read.lineage.versions == {"sqlflow-edl": "0.1.0"}
        weights = read.weights()
        np.testing.assert_array_equal(weights["f0/kernel"], np.arange(6, dtype=np.float32).reshape(2, 3))
        assert weights["step"] == 3
        assert weights["step"].shape == ()


def test_the_job_is_stored_as_it_is_sent(archive: Path) -> None:
    assert members(archive)["job.json"] == to_json(read_archive(archive).spec)


def test_the_same_model_is_the_same_file(archive: Path, write_model: Write) -> None:
    assert write_model().read_bytes() == archive.read_bytes()
    assert write_model(metrics={"rmse": 0.5}).read_bytes() != archive.read_bytes()


def test_nothing_but_the_archive_is_left_in_its_folder(archive: Path, write_model: Write) -> None:
    with pytest.raises(SpecError):
        write_model("refused.zip", weights={"w": np.array([object()])})
    assert [path.name for path in archive.parent.iterdir()] == ["m.zip"]


@pytest.mark.parametrize(
    "name",
    ["../evil.py", "/etc/passwd", "a/../../b", "a//b", "", ".", "a/.", "a\\b", "C:evil", "a\0b", "dir/"],
)
def test_a_program_file_outside_the_program_is_refused_when_written_and_when_read(
    archive: Path, write_model: Write, name: str
) -> None:
    with pytest.raises(SpecError, match="cannot have a member"):
        write_model(program={name: b"x"})
    if "\0" not in name:  # a zip file ends a name there
        with pytest.raises(SpecError, match="cannot have a member"):
            read_archive(rewritten(archive, {f"program/{name}": b"x"}))


@pytest.mark.parametrize("name", ["evil.py", "../m", "/etc/passwd", "weights.pkl", "program", "job.json/x"])
def test_a_member_that_no_archive_of_ours_has_is_refused(archive: Path, name: str) -> None:
    with pytest.raises(SpecError, match="cannot have a member"):
        read_archive(rewritten(archive, {name: b"x"}))


@pytest.mark.parametrize(
    "name", ["job.json", "weights.safetensors", "metrics.json", "curve.json", "lineage.json"]
)
def test_a_missing_member_is_named(archive: Path, name: str) -> None:
    with pytest.raises(SpecError, match=f"has no {name}"):
        read_archive(rewritten(archive, {name: None}))


def test_two_members_of_one_name_are_refused(archive: Path) -> None:
    with warnings.catch_warnings(), zipfile.ZipFile(archive, "a") as opened:
        warnings.simplefilter("ignore")
        opened.writestr("job.json", b"{}")
    with pytest.raises(SpecError, match="two members of one name"):
        read_archive(archive)


def test_a_member_that_expands_to_much_is_refused_unread(
    archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive_module, "MAX_MEMBER_BYTES", 16 << 20)
    bomb = rewritten(
        archive,
        {"program/model.py": b"\0" * (archive_module.MAX_MEMBER_BYTES + 1)},
        compression=zipfile.ZIP_DEFLATED,
    )
    assert len(bomb) < 1 << 20
    with pytest.raises(SpecError, match="expands to"):
        read_archive(bomb)


def test_many_members_that_expand_to_much_together_are_refused(
    archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive_module, "MAX_EXPANDED_BYTES", 1 << 20)
    bomb = {f"program/{n}.txt": b"\0" * (1 << 18) for n in range(5)}
    with pytest.raises(SpecError, match="beyond the limit"):
        read_archive(rewritten(archive, bomb, compression=zipfile.ZIP_DEFLATED))


def test_too_many_members_are_refused(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_module, "MAX_MEMBERS", 10)
    with pytest.raises(SpecError, match="more than 10"):
        read_archive(rewritten(archive, {f"program/{n}.txt": b"" for n in range(10)}))


def test_compressed_weights_are_refused_because_they_could_expand_to_anything(archive: Path) -> None:
    weights = members(archive)["weights.safetensors"]
    with pytest.raises(SpecError, match="weights are compressed"):
        read_archive(rewritten(archive, {"weights.safetensors": weights}, compression=zipfile.ZIP_DEFLATED))


def test_weights_of_another_size_than_is_stored_are_refused(archive: Path) -> None:
    data = bytearray(archive.read_bytes())
    name = data.rindex(
        b"weights.safetensors"
    )  # in the directory, where the size stands 22 bytes before the name
    data[name - 22 : name - 18] = (1 << 30).to_bytes(4, "little")
    with pytest.raises(SpecError, match="weights are compressed"):
        read_archive(bytes(data))


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compressions_are_refused(archive: Path, compression: int) -> None:
    with pytest.raises(SpecError, match="unsupported compression"):
        read_archive(rewritten(archive, {"curve.json": b"[]"}, compression=compression))


def test_an_encrypted_member_is_refused(archive: Path) -> None:
    data = bytearray(archive.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(SpecError, match="encrypted"):
        read_archive(bytes(data))


def test_a_zip_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as other:
        other.writestr("job.json", b"{}")
    with pytest.raises(SpecError, match="not a model archive"):
        read_archive(tmp_path / "x.zip")


@pytest.mark.parametrize("data", [b"", b"PK", b"not a zip", b"PK\x05\x06" + b"\0" * 18])
def test_what_is_no_zip_file_is_refused(data: bytes) -> None:
    with pytest.raises(SpecError, match="not a model archive"):
        read_archive(data)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"there is no archive .*gone\.zip"):
        read_archive(tmp_path / "gone.zip")


def test_an_archive_cut_anywhere_is_a_named_error(archive: Path) -> None:
    data = archive.read_bytes()
    for kept in range(0, len(data), 97):
        with pytest.raises(SpecError):
            read_archive(data[:kept])


def test_a_changed_byte_is_noticed_wherever_it_counts(archive: Path) -> None:
    """A byte of the zip's own fields may be without meaning; then what is read is what was written."""
    original, data = read_archive(archive), archive.read_bytes()
    noticed = 0
    for at in range(0, len(data), 13):
        changed = data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :]
        try:
            read = read_archive(changed)
            weights = read.weights()
        except SpecError:
            noticed += 1
            continue
        assert (read.spec, read.curve, read.lineage) == (original.spec, original.curve, original.lineage)
        np.testing.assert_array_equal(weights["f0/kernel"], original.weights()["f0/kernel"])
    assert noticed > len(data) / 13 / 2


@pytest.mark.parametrize(
    ("name", "contents"),
    [
        ("job.json", b"{}"),
        ("job.json", b'{"version": 99}'),
        ("metrics.json", b'{"auc": "high"}'),
        ("curve.json", b"{}"),
        ("lineage.json", b"{}"),
        ("lineage.json", b"\x80\x04."),
    ],
)
def test_a_member_of_another_form_is_refused(archive: Path, name: str, contents: bytes) -> None:
    with pytest.raises(SpecError):
        read_archive(rewritten(archive, {name: contents}))


def test_weights_that_lie_about_their_size_are_refused(archive: Path) -> None:
    read = read_archive(rewritten(archive, {"weights.safetensors": b"\xff" * 64}))
    with pytest.raises(SpecError, match="weights are damaged"):
        read.weights()


def test_the_program_is_written_and_never_executed(archive: Path, tmp_path: Path) -> None:
    folder = tmp_path / "program"
    read_archive(archive).write_program(folder)
    assert (folder / "vocabulary" / "f0.txt").read_text(encoding="utf-8") == "å\n表\n"
    assert (folder / "model.py").read_bytes().startswith(b"raise SystemExit")


def test_a_programs_files_are_its_own_without_caches(tmp_path: Path) -> None:
    for name in (
        "model.py",
        "reader.py",
        "job.json",
        "vocabulary/f0.txt",
        "__pycache__/model.pyc",
        ".git/config",
    ):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(name.encode())
    files = program_files(tmp_path)
    assert files == {name: name.encode() for name in ("model.py", "reader.py", "vocabulary/f0.txt")}


def test_the_stored_checksum_is_the_zip_standards(archive: Path) -> None:
    with zipfile.ZipFile(archive) as opened:
        assert all(zlib.crc32(opened.read(entry)) == entry.CRC for entry in opened.infolist())
        assert {entry.date_time for entry in opened.infolist()} == {(1980, 1, 1, 0, 0, 0)}


TRIALS = (
    Trial(
        1, "DNNRegressor (torch)", "SELECT …", 0.5, {"rmse": 0.5, "r2": None}, 1.5, 0.75, 12, ending="stopped"
    ),
    Trial(2, "LinearRegressor (torch)", "SELECT …", error="it failed"),
)


def test_the_trials_of_a_search_come_back(write_model: Write) -> None:
    written = write_model(trials=TRIALS)
    assert read_archive(written).trials == TRIALS
    assert json.loads(members(written)["trials.json"])[1]["error"] == "it failed"


def test_a_model_that_no_search_found_has_no_trials(archive: Path) -> None:
    assert "trials.json" not in members(archive)
    assert read_archive(archive).trials == ()


@pytest.mark.parametrize("damaged", [b"{", b"{}", b'[{"number": 1}]', b'[{"evil": 1}]', b"[1]"])
def test_damaged_trials_are_refused(write_model: Write, damaged: bytes) -> None:
    with pytest.raises(SpecError, match=r"trials\.json"):
        read_archive(rewritten(write_model(trials=TRIALS), {"trials.json": damaged}))


def test_the_errors_of_validation_rows_come_back(write_model: Write, archive: Path) -> None:
    widths = Widths((ColumnWidths("x", (0.5, 1.0), 0.0, (1.0, 2.0)),), -0.25, -1.0, 1.0)
    residuals = Residuals(2, (0.25, 1.5), scaled=ScaledErrors(2, (0.5, 1.25), widths))
    found = read_archive(write_model(uncertainty=residuals))
    assert (found.residuals, found.calibration) == (residuals, None)
    assert "residuals.json" not in members(archive)
    assert read_archive(archive).residuals is None


def test_the_calibration_of_classes_comes_back(write_model: Write) -> None:
    calibration = Calibration({"f1": Threshold(0.25, 0.75)}, 1.5, (0.75, 0.5), (0.25, 0.125))
    found = read_archive(write_model(uncertainty=calibration))
    assert (found.residuals, found.calibration) == (None, calibration)


@pytest.mark.parametrize(
    "damaged",
    [
        b"{",
        b'{"temperature": 0}',
        b'{"temperature": -1}',
        b'{"thresholds": {"f1": {"probability": 2, "value": 1}}}',
        b'{"thresholds": {"f1": 0.5}}',
        b'{"evil": 1}',
    ],
)
def test_a_damaged_calibration_is_refused(write_model: Write, damaged: bytes) -> None:
    written = write_model(uncertainty=Calibration())
    with pytest.raises(SpecError, match=r"calibration\.json"):
        read_archive(rewritten(written, {"calibration.json": damaged}))


def scale_term(term: bytes, rows: int = 1) -> bytes:
    """Errors with a term of the widths of intervals."""
    widths = b'{"columns": [%s], "base": 0, "least": -1, "most": 1}' % term
    return b'{"rows": 1, "quantiles": [1], "scaled": {"rows": %d, "quantiles": [1], "widths": %s}}' % (
        rows,
        widths,
    )


def test_errors_of_an_earlier_version_are_read(write_model: Write) -> None:
    written = rewritten(
        write_model(uncertainty=Residuals(1, (9.0,))), {"residuals.json": b'{"rows": 2, "quantiles": [1, 2]}'}
    )
    assert read_archive(written).residuals == Residuals(2, (1.0, 2.0))


@pytest.mark.parametrize(
    "damaged",
    [
        b"{",
        b"[]",
        b'{"rows": 1, "quantiles": []}',
        b'{"rows": 1, "quantiles": [1, 2]}',
        scale_term(b'["x", [0.5, 1.0], 0.0, [2.0, 1.0]]'),
        scale_term(b'["x", [0.5], 0.0, [1.0, 2.0]]'),
        scale_term(b'["x", [0.5, 1.0], 0.0, [], ["a"]]'),
        scale_term(b'["x", []]'),
        scale_term(b'["", [0.5, 1.0], 0.0, [1.0, 2.0]]', rows=0),
    ],
)
def test_damaged_errors_of_validation_rows_are_refused(write_model: Write, damaged: bytes) -> None:
    written = write_model(uncertainty=Residuals(2, (0.25, 1.5)))
    with pytest.raises(SpecError, match=r"residuals\.json"):
        read_archive(rewritten(written, {"residuals.json": damaged}))
