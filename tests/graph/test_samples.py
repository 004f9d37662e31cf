"""The 21 sample models: complete, seeded, with known shapes, and of ordinary size when they run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from explorer.errors import ModelError
from explorer.graph import describe, load, make_feeds, sample_names, samples_dir, save
from explorer.graph.samples import is_sample, sample_path
from tests import models

NAMES = sample_names()


def structure(name: str) -> onnx.ModelProto:
    return onnx.load(sample_path(name))


def test_all_samples_are_there() -> None:
    assert len(NAMES) == 21
    assert list(NAMES) == sorted(NAMES)
    assert {"resnet18", "squeezenet1_1", "efficientnet_b0", "bert_base", "llama_small"} <= set(NAMES)
    assert all(is_sample(name) for name in NAMES)
    assert not is_sample("resnet18.onnx")


def test_the_readme_names_every_file_and_its_licence() -> None:
    text = (samples_dir() / "README.md").read_text()
    assert all(f"`{name}`" in text for name in NAMES)
    assert "torchvision" in text
    assert "BSD-3-Clause" in text
    assert "Apache-2.0" in text
    assert (samples_dir() / "export_structures.py").is_file()


def test_an_unknown_sample_is_refused() -> None:
    with pytest.raises(ModelError, match=r"^No sample is called 'resnet19'; samples are: bert_base, "):
        sample_path("resnet19")


@pytest.mark.parametrize("name", NAMES)
def test_a_structure_holds_no_weights_and_passes_the_checker(name: str) -> None:
    proto = structure(name)
    onnx.checker.check_model(proto)
    floats = [t for t in proto.graph.initializer if t.data_type == onnx.TensorProto.FLOAT]
    assert all(np.prod(t.dims) <= 16 for t in floats)
    assert len(proto.SerializeToString()) < 200_000


@pytest.mark.parametrize("name", NAMES)
def test_a_sample_opens_filled_with_every_shape_known(name: str) -> None:
    graph, proto = load(name), structure(name)
    assert [v.name for v in graph.model.graph.inputs] == [proto.graph.input[0].name]
    assert [v.name for v in graph.outputs] == [v.name for v in proto.graph.output]
    assert len(graph.notices) == 1
    assert graph.notices[0].startswith(f"{len(proto.graph.input) - 1} weights were filled")
    assert graph.passes_checker
    summary = describe(graph)
    assert len(summary.nodes) == len(proto.graph.node)
    tensors = [tensor for node in summary.nodes for tensor in node.outputs]
    assert all(isinstance(dim, int) for tensor in tensors for dim in tensor.shape)
    assert summary.flops > 1e8
    declared = int({entry.key: entry.value for entry in proto.metadata_props}["parameters"])
    assert declared <= summary.parameters < declared * 1.02  # statistics of BatchNormalization come on top


@pytest.mark.parametrize("name", ["mobilenet_v3_small", "shufflenet_v2_x1_0"])
def test_name_and_seed_decide_the_model(name: str) -> None:
    assert load(name).fingerprint() == load(name, fill_weights=0).fingerprint()
    assert load(name, fill_weights=1).fingerprint() != load(name).fingerprint()
    assert load(sample_path(name), fill_weights=0).fingerprint() == load(name).fingerprint()
    assert load(name, fill_weights=1).structure_fingerprint() == load(name).structure_fingerprint()


def test_samples_are_different_models() -> None:
    assert len({load(name).structure_fingerprint() for name in NAMES}) == 21


QUICK = ["squeezenet1_1", "mobilenet_v3_small", "shufflenet_v2_x1_0"]
THOROUGH = ["densenet121", "efficientnet_b0", "googlenet", "llama_small", "resnet50"]


def check_outputs(name: str, folder: Path) -> None:
    graph = load(name)
    path = save(graph, folder / f"{name}.onnx")
    onnx.checker.check_model(str(path))
    saved = onnx.load(path)
    assert saved.graph.input[0] == structure(name).graph.input[0]
    assert list(saved.graph.output) == list(structure(name).graph.output)
    first, second = (models.run(path, make_feeds(graph, seed))[0] for seed in (0, 1))
    assert np.isfinite(first).all()
    assert 0.05 < first.std() < 20
    assert np.abs(first).max() < 100
    assert not np.allclose(first, second, rtol=1e-5, atol=1e-6)  # the data reaches the output


@pytest.mark.parametrize("name", QUICK)
def test_outputs_are_finite_and_of_ordinary_size(name: str, tmp_path: Path) -> None:
    check_outputs(name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", THOROUGH)
def test_outputs_of_larger_samples_are_of_ordinary_size(name: str, tmp_path: Path) -> None:
    check_outputs(name, tmp_path)
