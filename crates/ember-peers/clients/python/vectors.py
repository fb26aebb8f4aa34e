"""The vector set commands of redis-py, over RESP2 and RESP3: vectors.py PORT SOCKET"""

import sys

import redis
from redis.commands.vectorset.commands import QuantizationOptions


def check(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what}: got {got!r}, wanted {wanted!r}")


def near(what, got, wanted):
    if len(got) != len(wanted) or any(abs(one - other) > 0.02 for one, other in zip(got, wanted)):
        sys.exit(f"{what}: got {got!r}, wanted about {wanted!r}")


for protocol in (2, 3):
    client = redis.Redis(port=int(sys.argv[1]), protocol=protocol, decode_responses=True)
    client.flushall()
    vectors = client.vset()
    check("vadd", vectors.vadd("words", [1.0, 0.0, 0.2], "cat", attributes={"legs": 4}), 1)
    check("vadd again", vectors.vadd("words", [1.0, 0.1, 0.2], "cat"), 0)
    check("vadd of bytes", vectors.vadd("words", b"\x00\x00\x00\x00\x00\x00\x80?\x00\x00\x00\x00", "bird"), 1)
    vectors.vadd("words", [0.9, 0.2, 0.1], "dog", attributes='{"legs": 4, "name": "Rex"}')
    try:
        vectors.vadd("words", [1.0, 1.0, 1.0], "fish", quantization=QuantizationOptions.BIN)
        sys.exit("another quantization returned no error")
    except redis.ResponseError as error:
        check("error", str(error).startswith("asked quantization mismatch"), True)
    check("vcard", vectors.vcard("words"), 3)
    check("vdim", vectors.vdim("words"), 3)
    check("vsim", vectors.vsim("words", "cat", count=2), ["cat", "dog"])
    scores = vectors.vsim("words", [1.0, 0.1, 0.2], with_scores=True, count=3, ef=50, truth=True)
    check("scored", list(scores), ["cat", "dog", "bird"])
    near("scores", list(scores.values())[:1], [1.0])
    check("filter", vectors.vsim("words", "cat", filter='.name == "Rex"'), ["dog"])
    near("vemb", vectors.vemb("words", "cat"), [1.0, 0.1, 0.2])
    check("raw", vectors.vemb("words", "cat", raw=True)["quantization"], "int8")
    check("attributes", vectors.vgetattr("words", "dog"), {"legs": 4, "name": "Rex"})
    check("vsetattr", vectors.vsetattr("words", "bird", {"legs": 2}), 1)
    check("set", vectors.vgetattr("words", "bird"), {"legs": 2})
    links = vectors.vlinks("words", "cat")
    check("vlinks", sorted(links[-1]), ["bird", "dog"])
    check("scored links", sorted(vectors.vlinks("words", "cat", with_scores=True)[-1]), ["bird", "dog"])
    check("vinfo", vectors.vinfo("words")["vector-dim"], 3)
    check("vrandmember", len(vectors.vrandmember("words", 2)), 2)
    check("vrem", vectors.vrem("words", "cat"), 1)
    check("a missing set", vectors.vinfo("none"), None)
print("vector sets work")
