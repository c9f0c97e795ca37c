"""A sentence-transformers folder of BERT or MPNet weights (`model.safetensors`) with the same model as ONNX beside it.

Most published folders bring `onnx/model.onnx` along and need nothing of this. It writes the graph itself, because an
exporter needs PyTorch, which is a hundred times as large as what runs the result.

Run: python benchmarks/onnx_export.py FOLDER [--int8]
"""

import argparse
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file

OPSET = 20
FARTHEST = 128
"""Tokens beyond which MPNet's relative positions share a bucket."""
MODEL = Path("onnx", "model.onnx")
Weights = Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class Names:
    """What a kind of model calls its weights; ``{}`` is the number of the layer."""

    query: str
    key: str
    value: str
    attended: str
    attended_norm: str


KINDS = {
    "bert": Names(
        query="encoder.layer.{}.attention.self.query",
        key="encoder.layer.{}.attention.self.key",
        value="encoder.layer.{}.attention.self.value",
        attended="encoder.layer.{}.attention.output.dense",
        attended_norm="encoder.layer.{}.attention.output.LayerNorm",
    ),
    "mpnet": Names(
        query="encoder.layer.{}.attention.attn.q",
        key="encoder.layer.{}.attention.attn.k",
        value="encoder.layer.{}.attention.attn.v",
        attended="encoder.layer.{}.attention.attn.o",
        attended_norm="encoder.layer.{}.attention.LayerNorm",
    ),
}


@dataclass(slots=True)
class Graph:
    """A graph in the making: nodes in order, and the constants that they read."""

    weights: Weights
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, onnx.TensorProto] = field(default_factory=dict)

    def add(self, operator: str, *inputs: str, **attributes: object) -> str:
        """A node; the name of what it gives."""
        made = f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [made], **attributes))
        return made

    def constant(self, value: NDArray[np.float32] | NDArray[np.int64], name: str | None = None) -> str:
        """A constant; its name."""
        name = name or f"constant_{len(self.constants)}"
        if name not in self.constants:
            self.constants[name] = numpy_helper.from_array(np.ascontiguousarray(value), name)
        return name

    def numbers(self, *values: int) -> str:
        """A list of whole numbers; its name."""
        return self.constant(np.array(values, dtype=np.int64), "of_" + "_".join(map(str, values)))

    def weight(self, name: str) -> str:
        """Weights as the file has them; their name."""
        return self.constant(self.weights[name], name)

    def dense(self, source: str, name: str) -> str:
        """A linear layer."""
        turned = self.constant(self.weights[f"{name}.weight"].T, f"{name}.weight")
        return self.add("Add", self.add("MatMul", source, turned), self.weight(f"{name}.bias"))

    def norm(self, source: str, name: str, epsilon: float) -> str:
        """A layer normalisation."""
        scale, bias = self.weight(f"{name}.weight"), self.weight(f"{name}.bias")
        return self.add("LayerNormalization", source, scale, bias, axis=-1, epsilon=epsilon)


def exported(config: Mapping[str, object], weights: Weights) -> onnx.ModelProto:
    """The model of a configuration and its weights: token ids and their mask in, a vector for each token out.

    Raises:
        ValueError: it is neither BERT nor MPNet, or has another activation than GELU.
    """
    kind = str(config["model_type"])
    if kind not in KINDS or config.get("hidden_act", "gelu") != "gelu":
        raise ValueError(f"neither BERT nor MPNet with GELU: {kind}")
    graph, size, epsilon = Graph(weights), int(str(config["hidden_size"])), float(str(config["layer_norm_eps"]))
    state = graph.norm(_embedded(graph, kind, config), "embeddings.LayerNorm", epsilon)
    bias = _bias(graph, kind, config)
    heads, layers = int(str(config["num_attention_heads"])), int(str(config["num_hidden_layers"]))
    names = KINDS[kind]
    for layer in range(layers):
        attended = _attention(graph, state, names, layer, (heads, size // heads, bias))
        state = graph.norm(graph.add("Add", state, attended), names.attended_norm.format(layer), epsilon)
        wide = graph.add("Gelu", graph.dense(state, f"encoder.layer.{layer}.intermediate.dense"))
        narrow = graph.dense(wide, f"encoder.layer.{layer}.output.dense")
        state = graph.norm(graph.add("Add", state, narrow), f"encoder.layer.{layer}.output.LayerNorm", epsilon)
    graph.nodes.append(helper.make_node("Identity", [state], ["last_hidden_state"]))
    shape = ["batch", "sequence"]
    given = ["input_ids", "attention_mask"] + (["token_type_ids"] if kind == "bert" else [])
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, shape) for name in given]
    output = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, [*shape, size])
    whole = helper.make_graph(graph.nodes, kind, inputs, [output], list(graph.constants.values()))
    model = helper.make_model(whole, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)
    onnx.checker.check_model(model)
    return model


def _embedded(graph: Graph, kind: str, config: Mapping[str, object]) -> str:
    """Sum of the embeddings of the words, of their places and, for BERT, of their kind."""
    words = graph.add("Gather", graph.weight("embeddings.word_embeddings.weight"), "input_ids")
    table = "embeddings.position_embeddings.weight"
    first = int(str(config["pad_token_id"])) + 1 if kind == "mpnet" else 0  # MPNet counts from behind the padding
    ranks = graph.add("CumSum", "attention_mask", graph.numbers(1))
    places = graph.add("Add", graph.add("Sub", ranks, graph.numbers(1)), graph.numbers(first))
    total = graph.add("Add", words, graph.add("Gather", graph.weight(table), places))
    if kind == "bert":
        kinds = graph.add("Gather", graph.weight("embeddings.token_type_embeddings.weight"), "token_type_ids")
        total = graph.add("Add", total, kinds)
    return total


def _bias(graph: Graph, kind: str, config: Mapping[str, object]) -> str:
    """What is added to the attention: very little for padding, and for MPNet something by distance."""
    mask = graph.add("Cast", "attention_mask", to=TensorProto.FLOAT)
    missing = graph.add("Sub", graph.constant(np.float32(1).reshape(1), "one"), mask)
    hidden = graph.add("Mul", missing, graph.constant(np.float32(-10_000).reshape(1), "hidden"))
    bias = graph.add("Unsqueeze", hidden, graph.numbers(1, 2))
    if kind == "bert":
        return bias
    longest = int(str(config["max_position_embeddings"])) - 2
    by_bucket = graph.weights["encoder.relative_attention_bias.weight"]
    place = np.arange(longest)
    table = by_bucket[_bucket(place[None, :] - place[:, None], len(by_bucket))].transpose(2, 0, 1)[None]
    length = graph.add("Slice", graph.add("Shape", "input_ids"), graph.numbers(1), graph.numbers(2))
    ends = graph.add("Concat", length, length, axis=0)
    near = graph.add("Slice", graph.constant(table, "by_distance"), graph.numbers(0, 0), ends, graph.numbers(2, 3))
    return graph.add("Add", bias, near)


def _bucket(distance: NDArray[np.int64], buckets: int) -> NDArray[np.int64]:
    """The bucket of a relative position, as T5 has it (Raffel et al., 2020): exact when near, logarithmic when far."""
    half = buckets // 2
    far, exact = np.abs(distance), half // 2
    grown = np.log(np.maximum(far, 1) / exact) / math.log(FARTHEST / exact) * (half - exact)
    large = np.minimum(exact + grown.astype(np.int64), half - 1)
    found: NDArray[np.int64] = np.where(distance > 0, half, 0) + np.where(far < exact, far, large)
    return found


def _attention(graph: Graph, state: str, names: Names, layer: int, how: tuple[int, int, str]) -> str:
    """Scaled dot-product attention of several heads."""
    heads, width, bias = how
    apart = graph.numbers(0, 0, heads, width)

    def part(name: str, order: Sequence[int]) -> str:
        return graph.add(
            "Transpose", graph.add("Reshape", graph.dense(state, name.format(layer)), apart), perm=list(order)
        )

    query, value = part(names.query, (0, 2, 1, 3)), part(names.value, (0, 2, 1, 3))
    products = graph.add("MatMul", query, part(names.key, (0, 2, 3, 1)))
    scale = graph.constant(np.array([1 / math.sqrt(width)], dtype=np.float32), "scale")
    shares = graph.add("Softmax", graph.add("Add", graph.add("Mul", products, scale), bias), axis=-1)
    mixed = graph.add("Transpose", graph.add("MatMul", shares, value), perm=[0, 2, 1, 3])
    together = graph.add("Reshape", mixed, graph.numbers(0, 0, heads * width))
    return graph.dense(together, names.attended.format(layer))


def export(folder: Path, *, int8: bool = False) -> Path:
    """Write `onnx/model.onnx` into a folder; with ``int8`` its weights in eight bits."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    model = exported(config, load_file(folder / "model.safetensors"))
    target = folder / MODEL
    target.parent.mkdir(exist_ok=True)
    onnx.save(model, target)
    if int8:
        from onnxruntime.quantization import QuantType, quantize_dynamic  # noqa: PLC0415 - slow, and seldom wanted

        quantize_dynamic(target, target, weight_type=QuantType.QInt8, per_channel=True)
    return target


def main(arguments: Sequence[str] | None = None) -> int:
    """Export a folder; 0 when it is done."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="with config.json and model.safetensors")
    parser.add_argument("--int8", action="store_true", help="weights in eight bits: a quarter of the size")
    options = parser.parse_args(arguments)
    print(export(options.folder, int8=options.int8))
    return 0


if __name__ == "__main__":
    sys.exit(main())
