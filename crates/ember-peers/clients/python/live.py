"""A live query with redis-py: live.py PORT"""

import json
import sys

import redis

client = redis.Redis(port=int(sys.argv[1]), decode_responses=True)
client.set("price", 10)

states = client.pubsub()
states.subscribe("__watch@0__:GET price")
for message in states.listen():
    if message["type"] != "message":
        continue  # the confirmation
    state = json.loads(message["data"])
    print(state["version"], state["result"])
    if state["result"] == "13":
        break
    client.incr("price")
