"""Write a GGUF file: a Llama of 0.1 million random weights, which returns words without any sense.

The module runs inside the image, which has the package gguf. The file is the same in every run.
"""

from __future__ import annotations

import sys
from typing import Final

import gguf
import numpy as np

WORDS: Final = """
a an the this that one each every some my your our and or but so then while as of in on with by for
from model token pod node cloud river garden winter lantern engine letter harbour apple window music
paper stone bird train coffee market mountain ocean button copper thread signal bridge island candle
pocket whistle is was has makes finds keeps sings waits runs grows turns opens carries answers
counts remembers follows small green quiet early bright slow round golden gentle ready open hidden
simple patient northern
"""

CONTEXT: Final = 8192
WIDTH: Final = 64
HEADS: Final = 4
LAYERS: Final = 2
INNER: Final = 128
SEED: Final = 2026

UNKNOWN, BEGIN, END = 0, 1, 2
SPACE: Final = "▁"
"""How SentencePiece writes the space before a word."""

TEMPLATE: Final = (
    "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}assistant:"
)


def vocabulary() -> tuple[list[str], list[gguf.TokenType]]:
    """Return all bytes, so that any prompt is valid, and the words of the answers."""
    kinds = gguf.TokenType
    special = [("<unk>", kinds.UNKNOWN), ("<s>", kinds.CONTROL), ("</s>", kinds.CONTROL)]
    octets = [(f"<0x{number:02X}>", kinds.BYTE) for number in range(256)]
    words = [(f"{SPACE}{word}", kinds.NORMAL) for word in WORDS.split()]
    tokens, types = zip(*special, *octets, *words, strict=True)
    return list(tokens), list(types)


def write(path: str) -> None:
    tokens, types = vocabulary()
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny-random")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types(types)
    writer.add_unk_token_id(UNKNOWN)
    writer.add_bos_token_id(BEGIN)
    writer.add_eos_token_id(END)
    writer.add_chat_template(TEMPLATE)
    for name, tensor in weights(len(tokens)).items():
        writer.add_tensor(f"{name}.weight", tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def weights(tokens: int) -> dict[str, np.ndarray]:
    """Return tensors by llama.cpp's names. In the output, only words and the end of the answer have weights."""
    random = np.random.default_rng(SEED)

    def drawn(*shape: int) -> np.ndarray:
        return (random.standard_normal(shape) * 0.3).astype(np.float32)

    tensors = {"token_embd": drawn(tokens, WIDTH), "output": drawn(tokens, WIDTH)}
    tensors["output"][:END] = 0
    tensors["output"][END + 1 : tokens - len(WORDS.split())] = 0
    tensors["output_norm"] = np.ones(WIDTH, np.float32)
    for layer in range(LAYERS):
        block = f"blk.{layer}"
        for norm in ("attn_norm", "ffn_norm"):
            tensors[f"{block}.{norm}"] = np.ones(WIDTH, np.float32)
        for square in ("attn_q", "attn_k", "attn_v", "attn_output"):
            tensors[f"{block}.{square}"] = drawn(WIDTH, WIDTH)
        for wide in ("ffn_gate", "ffn_up"):
            tensors[f"{block}.{wide}"] = drawn(INNER, WIDTH)
        tensors[f"{block}.ffn_down"] = drawn(WIDTH, INNER)
    return tensors


if __name__ == "__main__":
    write(sys.argv[1])
