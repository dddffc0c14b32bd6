"""Recorded exchanges of the reference session server, played against ours over HTTP."""

import importlib.util
import json
import re
import socket
from pathlib import Path

import pytest

from tests.harness import running_server

VECTORS = Path(__file__).parent.parent / "vectors" / "history"
CONFIG = VECTORS / "config"

DIFFERENT_ON_PURPOSE = {
    "v1_14_upstream_http_errors": {21},
    "v1_17_upstream_malformed_200": {3, 4, 5, 10, 16},
    "v1_25_tools": {12, 14, 16},
    "v1_29_max_seq_len": {19, 20, 22},
}
"""Lines where the contract asks for better than the reference (its section 2)."""

OUR_HOOKS = {
    "miles.rollout.session.v2.picker_hub.drop_retries": "drop_retries",
    "miles.rollout.session.v2.postprocessor_hub.default_postprocess": "default",
}
"""Names of hooks in error texts are the configured ones (contract, section 1)."""

_spec = importlib.util.spec_from_file_location("replay", VECTORS / "replay.py")
replay = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(replay)


def environment_of(header: dict, engine_port: int) -> dict[str, str]:
    """The settings that a header's options map to."""
    server = header["server"]
    environment = {
        "TITO_MODEL": str(CONFIG / "tokenizer"),
        "TITO_CHAT_TEMPLATE": str(CONFIG / server["template"]),
        "TITO_RENDERER": f"template:{server['tito_model']}",
        "TITO_HISTORY_POLICY": {"v1": "rollback", "v2": "tree"}[server["version"]],
        "TITO_BACKEND": "sglang",
        "TITO_BACKEND_URL": f"http://127.0.0.1:{engine_port}",
        "TITO_ENGINE_TIMEOUT": str(server.get("miles_router_timeout", 5)),
        "TITO_INSTANCE_ID": server["session_server_instance_id"],
        "TITO_MESSAGE_MATCHER": server.get("session_message_matcher", "strict"),
        "TITO_SAMPLE_PICKER": "drop_retries",
    }
    if server.get("apply_chat_template_kwargs"):
        environment["TITO_CHAT_TEMPLATE_KWARGS"] = json.dumps(server["apply_chat_template_kwargs"])
    return environment


def vector_file(name: str, folder: Path) -> Path:
    """The recorded exchanges with our names of the hooks."""
    text = (VECTORS / f"{name}.jsonl").read_text(encoding="utf-8")
    for theirs, ours in OUR_HOOKS.items():
        text = text.replace(theirs, ours)
    path = folder / f"{name}.jsonl"
    path.write_text(text, encoding="utf-8")
    return path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.mark.parametrize("name", sorted(path.stem for path in VECTORS.glob("v[12]_*.jsonl")))
def test_recorded_exchanges_are_answered_alike(name: str, tmp_path: Path) -> None:
    path = vector_file(name, tmp_path)
    header = json.loads(path.read_text(encoding="utf-8").partition("\n")[0])
    port = free_port()
    with running_server(environment_of(header, port)) as url:
        differences = replay.Run(url, replay.Mock(port), loose=False).run(path)
    wanted = DIFFERENT_ON_PURPOSE.get(name, set())
    unexpected = [line for line in differences if int(re.match(r"line (\d+)", line)[1]) not in wanted]
    assert unexpected == []
