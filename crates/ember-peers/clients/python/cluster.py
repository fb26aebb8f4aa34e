"""RedisCluster of redis-py, over RESP2 and RESP3, against nodes of a cluster: cluster.py PORT"""

import sys

from redis.cluster import RedisCluster
from redis.exceptions import RedisClusterException


def check(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what}: got {got!r}, wanted {wanted!r}")


for protocol in (2, 3):
    client = RedisCluster(host="127.0.0.1", port=int(sys.argv[1]), protocol=protocol, decode_responses=True)
    check("nodes", len(client.get_nodes()), 3)
    check("slots", len(client.nodes_manager.slots_cache), 16384)
    for number in range(300):
        client.set(f"key:{number}", number)
    check("values", [client.get(f"key:{number}") for number in range(300)], [str(number) for number in range(300)])
    check("keys", client.dbsize(target_nodes=RedisCluster.PRIMARIES), 300)
    pipeline = client.pipeline()
    for number in range(100):
        pipeline.incr(f"key:{number}")
    check("pipeline", pipeline.execute(), list(range(1, 101)))
    check("mset", client.mset({"{tag}1": "a", "{tag}2": "b"}), True)
    check("mget", client.mget("{tag}1", "{tag}2"), ["a", "b"])
    try:
        client.mget("a", "b")
        sys.exit("keys of two slots returned no error")
    except RedisClusterException:
        pass
    check("script", client.eval("return redis.call('INCR', KEYS[1])", 1, "counter"), 1)
    check("scan", len(list(client.scan_iter(match="key:*"))), 300)
    check("slot", client.cluster_keyslot("foo"), 12182)
    check("shards", len(client.cluster_shards(target_nodes=client.get_random_node())), 3)
    client.flushall(target_nodes=RedisCluster.PRIMARIES)
