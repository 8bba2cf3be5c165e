"""The wheel, built as a release would be and used outside the source tree."""

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from email.message import Message as Metadata
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = {"semantic_recall", "langchain_semantic_recall", "llamaindex_semantic_recall"}

RECALL = """
import json, sys
from importlib.util import find_spec

import semantic_recall
from semantic_recall import SemanticRecall

with SemanticRecall.open("memory") as memory:
    memory.remember(
        [
            {"role": "user", "content": "My sister's wedding is on 14 June in Lisbon."},
            {"role": "user", "content": "The printer is out of paper again."},
        ],
        thread_id="family",
        resource_id="ana",
    )
with SemanticRecall.open("memory") as memory:
    recall = memory.recall("When does my sister get married?", resource_id="ana", top_k=1)
print(json.dumps({
    "file": semantic_recall.__file__,
    "hits": [hit.message.text for hit in recall.hits],
    "text": recall.text,
    "in_tree": [name for name in ("shared", "tests", "benchmarks") if find_spec(name)],
}))
"""


def run(*command: str | Path, cwd: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    finished = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the source distribution, which thereby proves complete."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    [built] = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def files(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Metadata:
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return Parser().parsestr(archive.read(name).decode())


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scripts folder of an environment that holds the wheel and can see the dependencies."""
    home = tmp_path_factory.mktemp("clean") / "venv"
    venv.create(home, symlinks=True)
    # Python 3.10 has no scheme of that name.
    scheme = "venv" if "venv" in sysconfig.get_scheme_names() else "posix_prefix"
    paths = sysconfig.get_paths(scheme, vars={"base": str(home), "platbase": str(home)})
    python = Path(paths["scripts"], "python")
    run(
        *(sys.executable, "-m", "pip", "--python", python, "install"),
        *("--no-deps", "--no-index", "--disable-pip-version-check", wheel),
        cwd=home,
    )
    # Dependencies come from the environment of the tests. Such a line adds the folder alone: the
    # .pth files in it are not read, so that the editable install is out of sight.
    here = sysconfig.get_paths()["purelib"]
    Path(paths["purelib"], "dependencies.pth").write_text(here + "\n", encoding="utf-8")
    return Path(paths["scripts"])


def test_the_top_level_holds_the_three_packages(files: list[str]) -> None:
    top = {name.partition("/")[0] for name in files}
    assert {name for name in top if not name.endswith(".dist-info")} == PACKAGES


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_each_package_is_typed(files: list[str], package: str) -> None:
    assert f"{package}/py.typed" in files


def test_only_code_and_samples_are_shipped(files: list[str]) -> None:
    others = {
        name
        for name in files
        if not name.endswith((".py", "/py.typed")) and ".dist-info/" not in name
    }
    assert {name.rpartition("/")[0] for name in others} == {
        "semantic_recall/inspector/static",
        "semantic_recall/samples",
    }
    assert not [name for name in files if "/tests/" in name or "conftest" in name]


def test_the_metadata_offers_the_extras(metadata: Metadata) -> None:
    assert set(metadata.get_all("Provides-Extra", [])) == {
        *("all", "inspect", "langchain", "llamaindex", "mcp", "multilingual", "otel", "postgres"),
    }
    assert metadata["License-Expression"] == "MIT"
    assert metadata["Requires-Python"] == ">=3.10"
    assert str(metadata.get_payload()).startswith("# ")


def test_the_wheel_recalls_outside_the_tree(installed: Path, tmp_path: Path) -> None:
    result = json.loads(run(installed / "python", "-c", RECALL, cwd=tmp_path))
    assert Path(result["file"]).is_relative_to(installed.parent)
    assert result["hits"] == ["My sister's wedding is on 14 June in Lisbon."]
    assert "My sister's wedding" in result["text"]
    assert result["in_tree"] == []


def test_the_wheel_brings_the_command(installed: Path, tmp_path: Path) -> None:
    assert "semantic-recall 0." in run(installed / "semantic-recall", "--version", cwd=tmp_path)
    found = run(
        *(installed / "semantic-recall", "demo", "--path", tmp_path / "demo", "--json"),
        cwd=tmp_path,
    )
    assert json.loads(found)
