"""A small sentence embedding model with random weights, laid out in a folder as published ones are."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

EXPORT = Path(__file__).resolve().parents[2] / "benchmarks" / "onnx_export.py"
SIZE = 32
LAYERS = 2
LENGTH = 12
WORDS = (
    "a", "the", "my", "our", "her", "his", "of", "in", "on", "to",
    "and", "with", "who", "what", "where", "when", "did", "does", "bought", "repaired",
    "sold", "sings", "lives", "moved", "harpsichord", "piano", "violin", "bicycle", "boat", "garden",
    "kitchen", "bakery", "choir", "dog", "greyhound", "telescope", "soup", "rain", "train", "invoice",
    "vance", "anna", "ben", "mira", "jon", "old", "new", "blue", "green", "village",
    "station", "yellow",
)  # fmt: skip
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")


def small_model(folder: Path, seed: int = 1, kind: str = "bert") -> Path:
    """A model of two layers with its files, its ONNX among them; the folder, which is made."""
    described = write_settings(folder, kind)
    shapes = _shapes(described)
    random = np.random.default_rng(seed)
    weights = {name: random.normal(0, 0.2, shape).astype(np.float32) for name, shape in shapes.items()}
    weights |= {name: np.ones(shape, np.float32) for name, shape in shapes.items() if name.endswith("Norm.weight")}
    save_file(weights, folder / "model.safetensors")
    done = subprocess.run([sys.executable, EXPORT, folder], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def write_settings(folder: Path, kind: str = "bert", pooling: str = "mean_tokens") -> dict[str, object]:
    """Everything but the weights: what published folders have in their small files; the model's configuration."""
    (folder / "1_Pooling").mkdir(parents=True, exist_ok=True)
    described: dict[str, object] = {
        "model_type": kind, "hidden_size": SIZE, "num_hidden_layers": LAYERS, "num_attention_heads": 4,
        "intermediate_size": 2 * SIZE, "max_position_embeddings": 2 * LENGTH, "layer_norm_eps": 1e-12,
        "hidden_act": "gelu", "pad_token_id": 0, "vocab_size": len(SPECIAL) + len(WORDS), "type_vocab_size": 2,
    }  # fmt: skip
    modules = [
        {"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    ]
    files: dict[str, object] = {
        "config.json": described,
        "modules.json": modules,
        "1_Pooling/config.json": {"word_embedding_dimension": SIZE, f"pooling_mode_{pooling}": True},
        "sentence_bert_config.json": {"max_seq_length": LENGTH},
    }
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    tokenizer = Tokenizer(WordLevel({word: place for place, word in enumerate((*SPECIAL, *WORDS))}, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = Lowercase(), Whitespace()
    tokenizer.post_processor = TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    tokenizer.save(str(folder / "tokenizer.json"))
    return described


def _shapes(described: dict[str, object]) -> dict[str, tuple[int, ...]]:
    bert = described["model_type"] == "bert"
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (len(SPECIAL) + len(WORDS), SIZE),
        "embeddings.position_embeddings.weight": (2 * LENGTH, SIZE),
    }
    if bert:
        shapes["embeddings.token_type_embeddings.weight"] = (2, SIZE)
    else:
        shapes["encoder.relative_attention_bias.weight"] = (32, 4)
    attention = "attention.self.{}" if bert else "attention.attn.{}"
    names = ("query", "key", "value") if bert else ("q", "k", "v")
    norms = ["embeddings.LayerNorm"]
    for layer in range(LAYERS):
        at = f"encoder.layer.{layer}"
        attended = f"{at}.attention.output" if bert else f"{at}.attention"
        dense = {f"{at}.{attention.format(name)}": (SIZE, SIZE) for name in names}
        dense |= {f"{attended}.dense" if bert else f"{at}.attention.attn.o": (SIZE, SIZE)}
        dense |= {f"{at}.intermediate.dense": (2 * SIZE, SIZE), f"{at}.output.dense": (SIZE, 2 * SIZE)}
        for name, shape in dense.items():
            shapes |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
        norms += [f"{attended}.LayerNorm", f"{at}.output.LayerNorm"]
    for norm in norms:
        shapes |= {f"{norm}.weight": (SIZE,), f"{norm}.bias": (SIZE,)}
    return shapes
