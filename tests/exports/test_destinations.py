"""Destinations: local folders, an S3 stand-in, other file systems; shards as `datasets` loads them."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest
from django.core.management import CommandError

from sessions_app.errors import InvalidArgument
from tests.exports.exporting import export, linear, shards, visible
from tests.integration.test_samples import forked
from trainer_export.jobs.destinations import LocalFolder, RemoteFolder, destination_of
from trainer_export.renderers import profile_renderer


@pytest.fixture(autouse=True)
def _fresh_renderers() -> None:
    profile_renderer.cache_clear()


@pytest.fixture(scope="module")
def s3() -> Iterator[fsspec.AbstractFileSystem]:
    """An S3 on this machine, told to clients by the environment, as one would a real one."""
    server_module = pytest.importorskip("moto.server")
    pytest.importorskip("s3fs")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = server_module.ThreadedMotoServer(ip_address="127.0.0.1", port=port, verbose=False)
    server.start()
    told = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "b",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    before = {name: os.environ.get(name) for name in told}
    os.environ.update(told)
    try:
        system = fsspec.filesystem("s3", skip_instance_cache=True)
        system.mkdir("exports")
        yield system
    finally:
        server.stop()
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def test_an_export_to_s3_is_the_export_to_a_folder(toy, tmp_path: Path, s3) -> None:
    client, engine = toy
    sessions = [linear(client, engine), forked(client, engine)]
    options = ("--shard-tokens", "1", "--check")
    export("s3://exports/run/1", *options, sessions=sessions)
    export(tmp_path, *options, sessions=sessions)
    s3.invalidate_cache()
    names = sorted(name.removeprefix("exports/run/1/") for name in s3.find("exports/run/1"))
    assert names == visible(tmp_path)
    for name in names:
        assert s3.cat_file(f"exports/run/1/{name}") == (tmp_path / name).read_bytes()


def test_a_bucket_that_is_not_there_fails_the_export(toy, s3) -> None:
    client, engine = toy
    with pytest.raises(CommandError, match="is failed"):
        export("s3://no-such-bucket-1/x", sessions=[linear(client, engine)])


def test_a_file_system_in_memory(toy) -> None:
    client, engine = toy
    export("memory://exports/m", sessions=[linear(client, engine)])
    system = fsspec.filesystem("memory")
    names = sorted(name.rpartition("/")[2] for name in system.find("/exports/m"))
    assert names == ["manifest.json", "shard-00000-of-00001.parquet"]


@pytest.mark.parametrize("url", ["nosuch://x/y", "hdfs9://x"])
def test_a_file_system_that_is_unknown_is_refused(url: str) -> None:
    with pytest.raises(InvalidArgument, match="destination"):
        destination_of(url)


@pytest.mark.parametrize("url", ["/a/b", "a/b", "file:///a/b", "~/x"])
def test_local_folders(url: str) -> None:
    destination = destination_of(url)
    assert isinstance(destination, LocalFolder)
    assert destination.folder.is_absolute()


def test_where_an_upload_can_be_seen_half_done_it_has_another_name(tmp_path: Path) -> None:
    system = fsspec.filesystem("file")
    seen: list[str] = []
    put = system.put_file

    class Watched:
        def __getattr__(self, name: str) -> object:
            return getattr(system, name)

        def put_file(self, source: str, target: str) -> None:
            seen.append(target.rpartition("/")[2])
            put(source, target)

    file = tmp_path / "made"
    file.write_bytes(b"x")
    RemoteFolder(Watched(), str(tmp_path / "out"), atomic_upload=False).publish(file, "final")
    assert seen[0].startswith(".part-")
    assert visible(tmp_path / "out") == ["final"]


@pytest.mark.slow
@pytest.mark.parametrize(("format", "kind"), [("parquet", "parquet"), ("jsonl", "json")])
@pytest.mark.parametrize("shape", ["native", "miles", "verl", "trl"])
def test_datasets_loads_the_shards(
    toy, tmp_path: Path, shape: str, format: str, kind: str, monkeypatch
) -> None:
    datasets = pytest.importorskip("datasets")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    client, engine = toy
    sessions = [linear(client, engine), forked(client, engine)]
    export(tmp_path / "out", "--shape", shape, "--format", format, "--shard-tokens", "1", sessions=sessions)
    files = [str(file) for file in shards(tmp_path / "out", format)]
    loaded = datasets.load_dataset(kind, data_files=files, split="train", cache_dir=str(tmp_path / "cache"))
    assert len(loaded) == 3
    assert loaded["session_id"] == [sessions[0], sessions[1], sessions[1]]
    tokens = {"native": "tokens", "miles": "tokens", "verl": "input_ids", "trl": "prompt_ids"}[shape]
    assert loaded[0][tokens][:4] == [1, 5, 3, 101]


def test_a_folder_is_cleared_but_for_what_is_kept(tmp_path: Path, s3) -> None:
    for url, system in ((str(tmp_path), fsspec.filesystem("file")), ("s3://exports/clear", s3)):
        destination = destination_of(url)
        destination.clear(".part-x")
        for name in ("a", "b", ".part-c/d"):
            file = tmp_path / "made"
            file.write_bytes(b"x")
            destination.publish(file, f".part-x/{name}")
        destination.clear(".part-x", {"b"})
        system.invalidate_cache()
        found = [path.rpartition(".part-x/")[2] for path in system.find(url.removeprefix("s3://"))]
        assert found == ["b"]
        destination.clear(".part-x", ())
        system.invalidate_cache()
        assert system.find(url.removeprefix("s3://")) == []
