#!/usr/bin/env python3
"""stories_forms.py MODEL.bin TOKENIZER.bin DIR: a model of llama2.c in the forms of others.

Writes DIR/f32, f16, q8_0, q4_0 (each a NAME.gguf as llama.cpp lays Llama out) and DIR/hugging-face
(config.json, model.safetensors, tokenizer.json as Transformers does).  A matrix whose rows are no
multiple of 32 long stays F16 in q8_0 and q4_0, as in llama.cpp.  Nothing but Python's own modules.

stories_forms.py --log-probs FILE.gguf ID...: log P of each id behind the first, from a reading of
the file in float64: the reference for what is quantised.
"""
import json
import math
import os
import struct
import sys
from array import array

F32, F16, Q4_0, Q8_0 = 0, 1, 2, 8
NAMES = {"f32": F32, "f16": F16, "q8_0": Q8_0, "q4_0": Q4_0}


# ---- llama2.c's files ----

def read_model(path):
    with open(path, "rb") as file:
        data = file.read()
    d, f, layers, heads, kv_heads, v, context = struct.unpack("<7i", data[:28])
    shared, v = v > 0, abs(v)
    at, kv = 28, d // heads * kv_heads

    def take(rows, cols):
        nonlocal at
        values = array("f", data[at:at + 4 * rows * cols])
        at += 4 * rows * cols
        return (rows, cols, values)

    def take_layers(rows, cols):
        return [take(rows, cols) for _ in range(layers)]

    t = {"token_embd": take(v, d)}
    for name, rows, cols in (("attn_norm", 1, d), ("attn_q", d, d), ("attn_k", kv, d), ("attn_v", kv, d),
                             ("attn_output", d, d), ("ffn_norm", 1, d), ("ffn_gate", f, d),
                             ("ffn_down", d, f), ("ffn_up", f, d)):
        for i, x in enumerate(take_layers(rows, cols)):
            t["blk.%d.%s" % (i, name)] = x
    t["output_norm"] = take(1, d)
    take(context, d // heads)  # the rotary table, real and imaginary
    if not shared:
        t["output"] = take(v, d)
    sizes = dict(d=d, f=f, layers=layers, heads=heads, kv_heads=kv_heads, v=v, context=context)
    return sizes, t


def read_tokens(path, v):
    with open(path, "rb") as file:
        data = file.read()
    at, tokens = 4, []
    for i in range(v):
        score, n = struct.unpack_from("<fi", data, at)
        # The bytes' own pieces stand behind the three special ones, in some files as raw bytes.
        text = ("<unk>", "<s>", "</s>")[i] if i < 3 else "<0x%02X>" % (i - 3) if i < 259 else \
            data[at + 8:at + 8 + n].decode().replace(" ", "\u2581")
        tokens.append((text, score))
        at += 8 + n
    return tokens


# ---- GGUF ----

def half(x):
    return struct.pack("<e", x)


def quantise(values, kind):
    """ggml's reference: q8_0 by the largest magnitude / 127, q4_0 by the signed largest / -8."""
    out = bytearray()
    for i in range(0, len(values), 32):
        x = values[i:i + 32]
        if kind == Q8_0:
            scale = max(abs(a) for a in x) / 127
            inverse = 1 / scale if scale else 0
            out += half(scale) + struct.pack("<32b", *(int(math.copysign(math.floor(abs(a * inverse) + .5), a))
                                                       for a in x))
        else:
            largest = max(x, key=abs)
            scale = largest / -8
            inverse = 1 / scale if scale else 0
            q = [min(15, int(a * inverse + 8.5)) for a in x]
            out += half(scale) + bytes(q[j] | q[j + 16] << 4 for j in range(16))
    return bytes(out)


def write_gguf(path, sizes, tensors, tokens, kind):
    def text(s):
        b = s.encode()
        return struct.pack("<Q", len(b)) + b

    def items(kind_of, packed, n):
        return struct.pack("<IIQ", 9, kind_of, n) + packed

    whole = {"context_length": "context", "embedding_length": "d", "block_count": "layers",
             "feed_forward_length": "f", "attention.head_count": "heads",
             "attention.head_count_kv": "kv_heads"}
    pairs = [("general.architecture", struct.pack("<I", 8) + text("llama"))]
    pairs += [("llama." + key, struct.pack("<II", 4, sizes[name])) for key, name in whole.items()]
    pairs += [("llama.rope.dimension_count", struct.pack("<II", 4, sizes["d"] // sizes["heads"])),
              ("llama.attention.layer_norm_rms_epsilon", struct.pack("<If", 6, 1e-5)),
              ("tokenizer.ggml.model", struct.pack("<I", 8) + text("llama")),
              ("tokenizer.ggml.tokens", items(8, b"".join(text(t) for t, _ in tokens), len(tokens))),
              ("tokenizer.ggml.scores", items(6, struct.pack("<%df" % len(tokens), *(s for _, s in tokens)),
                                              len(tokens))),
              ("tokenizer.ggml.token_type",
               items(5, struct.pack("<%di" % len(tokens),
                                    *(2 if i == 0 else 3 if i < 3 else 6 if is_byte(t) else 1
                                      for i, (t, _) in enumerate(tokens))), len(tokens)))]
    pairs += [("tokenizer.ggml.%s_token_id" % name, struct.pack("<II", 4, i))
              for i, name in enumerate(("unknown", "bos", "eos"))]
    infos, data = b"", bytearray()
    for name, (rows, cols, values) in tensors.items():
        k = F32 if rows == 1 else F16 if kind in (Q4_0, Q8_0) and cols % 32 else kind
        data += bytes(-len(data) % 32)
        dims = (cols,) if rows == 1 else (cols, rows)
        infos += text(name + ".weight") + struct.pack("<I%dQIQ" % len(dims), len(dims), *dims, k, len(data))
        data += (values.tobytes() if k == F32 else struct.pack("<%de" % len(values), *values) if k == F16
                 else quantise(values, k))
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(pairs))
    head += b"".join(text(key) + value for key, value in pairs) + infos
    with open(path, "wb") as file:
        file.write(head + bytes(-len(head) % 32) + data)


def is_byte(text):
    return len(text) == 6 and text.startswith("<0x")


# ---- Hugging Face ----

def halves(x, heads):
    """Rows of a head as Transformers turns them: its first half are the pairs' first members."""
    rows, cols, values = x
    size, out = rows // heads, array("f")
    for h in range(heads):
        for part in (0, 1):
            for j in range(part, size, 2):
                at = (h * size + j) * cols
                out += values[at:at + cols]
    return (rows, cols, out)


def write_hugging_face(folder, sizes, tensors, tokens):
    os.makedirs(folder, exist_ok=True)
    names = {"attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
             "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
             "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj",
             "ffn_down": "mlp.down_proj", "ffn_up": "mlp.up_proj"}
    header, data = {}, bytearray()
    for name, x in tensors.items():
        if name.startswith("blk."):
            _, layer, part = name.split(".")
            if part in ("attn_q", "attn_k"):
                x = halves(x, sizes["heads" if part == "attn_q" else "kv_heads"])
            to = "model.layers.%s.%s.weight" % (layer, names[part])
        else:
            to = {"token_embd": "model.embed_tokens.weight", "output_norm": "model.norm.weight",
                  "output": "lm_head.weight"}[name]
        rows, cols, values = x
        begin = len(data)
        data += values.tobytes()
        header[to] = {"dtype": "F32", "shape": [cols] if rows == 1 else [rows, cols],
                      "data_offsets": [begin, len(data)]}
    packed = json.dumps(header).encode()
    packed += b" " * (-len(packed) % 8)
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(packed)) + packed + data)
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu",
              "hidden_size": sizes["d"], "intermediate_size": sizes["f"],
              "num_hidden_layers": sizes["layers"], "num_attention_heads": sizes["heads"],
              "num_key_value_heads": sizes["kv_heads"], "vocab_size": sizes["v"],
              "max_position_embeddings": sizes["context"], "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
              "tie_word_embeddings": "output" not in tensors, "bos_token_id": 1, "eos_token_id": 2}
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(config, file)
    # Merges as Transformers makes them of a list of pieces: every way to split a piece into two,
    # the pieces by score.
    ids = {t: i for i, (t, _) in enumerate(tokens)}
    merges = []
    for t, score in tokens[3:]:
        if not is_byte(t):
            split = [(t[:i], t[i:]) for i in range(1, len(t)) if t[:i] in ids and t[i:] in ids]
            merges += [(-score, ids[a], ids[b], a + " " + b) for a, b in split]
    merges.sort()
    special = [{"id": i, "content": tokens[i][0], "single_word": False, "lstrip": False, "rstrip": False,
                "normalized": False, "special": True} for i in range(3)]
    tokenizer = {"version": "1.0", "added_tokens": special,
                 "normalizer": {"type": "Sequence", "normalizers": [
                     {"type": "Prepend", "prepend": "\u2581"},
                     {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]},
                 "pre_tokenizer": None,
                 "post_processor": {"type": "TemplateProcessing",
                                    "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
                                               {"Sequence": {"id": "A", "type_id": 0}}],
                                    "pair": [], "special_tokens": {
                                        "<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}},
                 "decoder": {"type": "Sequence", "decoders": [
                     {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
                     {"type": "ByteFallback"}, {"type": "Fuse"},
                     {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
                 "model": {"type": "BPE", "dropout": None, "unk_token": "<unk>", "fuse_unk": True,
                           "byte_fallback": True, "vocab": ids, "merges": [m[3] for m in merges]}}
    with open(os.path.join(folder, "tokenizer.json"), "w") as file:
        json.dump(tokenizer, file)


# ---- a reading in float64 ----

def read_gguf(path):
    with open(path, "rb") as file:
        data = file.read()
    at = 24
    _, _, count, pairs = struct.unpack_from("<4sIQQ", data, 0)
    about = {}

    def text():
        nonlocal at
        n = struct.unpack_from("<Q", data, at)[0]
        at += 8 + n
        return data[at - n:at].decode()

    def value(kind):
        nonlocal at
        if kind == 8:
            return text()
        if kind == 9:
            of, n = struct.unpack_from("<IQ", data, at)
            at += 12
            return [value(of) for _ in range(n)]
        form = {4: "<I", 5: "<i", 6: "<f"}[kind]
        at += 4
        return struct.unpack_from(form, data, at - 4)[0]

    for _ in range(pairs):
        key = text()
        at += 4
        about[key] = value(struct.unpack_from("<I", data, at - 4)[0])
    infos = []
    for _ in range(count):
        name = text()
        rank = struct.unpack_from("<I", data, at)[0]
        dims = struct.unpack_from("<%dQ" % rank, data, at + 4)
        kind, offset = struct.unpack_from("<IQ", data, at + 4 + 8 * rank)
        at += 16 + 8 * rank
        infos.append((name, dims, kind, offset))
    begin = (at + 31) // 32 * 32
    tensors = {}
    for name, dims, kind, offset in infos:
        n = math.prod(dims)
        here = begin + offset
        if kind == F32:
            x = struct.unpack_from("<%df" % n, data, here)
        elif kind == F16:
            x = struct.unpack_from("<%de" % n, data, here)
        else:
            x = []
            for _ in range(n // 32):
                scale = struct.unpack_from("<e", data, here)[0]
                if kind == Q8_0:
                    x += [scale * q for q in struct.unpack_from("<32b", data, here + 2)]
                    here += 34
                else:
                    q = data[here + 2:here + 18]
                    x += [scale * ((b & 15) - 8) for b in q] + [scale * ((b >> 4) - 8) for b in q]
                    here += 18
        tensors[name[:-len(".weight")]] = [x[i:i + dims[0]] for i in range(0, n, dims[0])]
    return about, tensors


def log_probs(path, ids):
    about, t = read_gguf(path)
    heads, kv_heads = about["llama.attention.head_count"], about["llama.attention.head_count_kv"]
    size = about["llama.embedding_length"] // heads
    keys = [[] for _ in range(about["llama.block_count"])]

    def times(matrix, x):
        return [sum(map(float.__mul__, map(float, row), x)) for row in matrix]

    def norm(gain, x):
        r = 1 / math.sqrt(sum(a * a for a in x) / len(x) + 1e-5)
        return [a * r * g for a, g in zip(x, gain[0])]

    def turn(x, position):
        out = []
        for i in range(0, len(x), 2):
            angle = position * 10000.0 ** (-(i % size) / size)
            c, s = math.cos(angle), math.sin(angle)
            out += [x[i] * c - x[i + 1] * s, x[i] * s + x[i + 1] * c]
        return out

    said = []
    for position, token in enumerate(ids[:-1]):
        x = [float(a) for a in t["token_embd"][token]]
        for layer, cache in enumerate(keys):
            def w(name):
                return t["blk.%d.%s" % (layer, name)]

            y = norm(w("attn_norm"), x)
            q = turn(times(w("attn_q"), y), position)
            cache.append((turn(times(w("attn_k"), y), position), times(w("attn_v"), y)))
            mixed = []
            for h in range(heads):
                at = h // (heads // kv_heads) * size
                mine = q[h * size:(h + 1) * size]
                score = [sum(a * b for a, b in zip(mine, k[at:at + size])) / math.sqrt(size) for k, _ in cache]
                top = max(score)
                p = [math.exp(s - top) for s in score]
                mixed += [sum(a * v[at + j] for a, (_, v) in zip(p, cache)) / sum(p) for j in range(size)]
            x = [a + b for a, b in zip(x, times(w("attn_output"), mixed))]
            y = norm(w("ffn_norm"), x)
            inner = [g / (1 + math.exp(-g)) * u for g, u in zip(times(w("ffn_gate"), y), times(w("ffn_up"), y))]
            x = [a + b for a, b in zip(x, times(w("ffn_down"), inner))]
        logits = times(t.get("output", t["token_embd"]), norm(t["output_norm"], x))
        top = max(logits)
        said.append(logits[ids[position + 1]] - top - math.log(sum(math.exp(a - top) for a in logits)))
    return said


def main():
    if sys.argv[1] == "--log-probs":
        print(" ".join("%.6f" % p for p in log_probs(sys.argv[2], [int(i) for i in sys.argv[3:]])))
        return
    model, tokenizer, folder = sys.argv[1:]
    sizes, tensors = read_model(model)
    tokens = read_tokens(tokenizer, sizes["v"])
    for name, kind in NAMES.items():
        os.makedirs(os.path.join(folder, name), exist_ok=True)
        write_gguf(os.path.join(folder, name, "model.gguf"), sizes, tensors, tokens, kind)
    write_hugging_face(os.path.join(folder, "hugging-face"), sizes, tensors, tokens)


main()
