import base64
import math
import re
import sys
from array import array
from collections import Counter

import redis

port, words_file, *queries = sys.argv[1:]
client = redis.Redis(port=int(port), decode_responses=True, protocol=3)

# One word per line, with the largest of its numbers and all numbers in four bits each.
words = {}
for line in open(words_file, encoding="ascii"):
    if line.startswith("#"):
        continue
    word, largest, digits = line.split()
    halves = [half for byte in base64.b64decode(digits) for half in (byte >> 4, byte & 15)]
    words[word] = [(half - 8) / 7 * float(largest) for half in halves]


def known(text):
    return [word for word in re.findall("[a-z]+", text.lower()) if word in words]


# The texts: the server's summaries of its commands.
docs = client.execute_command("COMMAND DOCS")
texts = {name: facts["summary"] for name, facts in docs.items()}
groups = {name: facts["group"] for name, facts in docs.items()}
seen = Counter(word for text in texts.values() for word in set(known(text)))

# The mean vector of the words, which does not distinguish texts.
common = [sum(words[word][at] for word in seen) / len(seen) for at in range(100)]


def vector(text):
    """Returns the sum of the words' vectors, with more weight for rarer words."""
    total = [0.0] * 100
    for word in known(text):
        weight = math.log(len(texts) / (1 + seen[word]))
        parts = zip(total, words[word], common)
        total = [number + weight * (other - same) for number, other, same in parts]
    return array("f", total).tobytes()


client.delete("commands")
for name, text in texts.items():
    if known(text):
        client.vset().vadd("commands", vector(text), name, attributes={"group": groups[name]})

for query in queries:
    text, _, group = query.partition(" in:")
    only = f'.group == "{group}"' if group else None
    found = client.vset().vsim("commands", vector(text), with_scores=True, count=3, filter=only)
    print(query)
    for name, score in found.items():
        print(f"  {score:.2f} {name.upper():12} {texts[name]}")
