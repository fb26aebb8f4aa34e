"""Typical use of redis-py under asyncio, over RESP2, RESP3 and a unix socket: asynchronous.py PORT SOCKET"""

import asyncio
import sys

import redis
import redis.asyncio as aioredis

PATIENCE_S = 20


def check(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what}: got {got!r}, wanted {wanted!r}")


async def many_at_once(client):
    """A pool of connections under many tasks."""
    await asyncio.gather(*(client.set(f"key:{number}", number) for number in range(500)))
    check("gather", await asyncio.gather(*(client.incr("counter") for _ in range(500))) != [], True)
    check("counter", await client.get("counter"), b"500")
    async with client.pipeline(transaction=True) as pipeline:
        replies = await pipeline.set("a", 1).incrby("a", 41).lpush("list", "x", "y").execute()
    check("transaction", replies, [True, 42, 2])
    found = {key async for key in client.scan_iter(match="key:*", count=50)}
    check("scan", len(found), 500)


async def types_map_to_python_types(client, protocol):
    await client.hset("hash", mapping={"one": "1", "two": "2"})
    check("hash", await client.hgetall("hash"), {b"one": b"1", b"two": b"2"})
    await client.zadd("scores", {"low": 1.5, "high": 9})
    check("score", await client.zscore("scores", "low"), 1.5)
    # redis-py returns a pair as a list with RESP3 and as a tuple with RESP2.
    pairs = [tuple(pair) for pair in await client.zrange("scores", 0, -1, withscores=True)]
    check("scores", pairs, [(b"low", 1.5), (b"high", 9.0)])
    await client.sadd("set", "a", "b")
    check("set", set(await client.smembers("set")), {b"a", b"b"})
    check("geo", await client.geoadd("geo", (13.361389, 38.115556, "Palermo")), 1)
    check("hello", (await client.execute_command("CLIENT", "INFO")) is not None, True)
    info = await client.execute_command("HELLO")
    info = info if isinstance(info, dict) else dict(zip(info[::2], info[1::2]))
    check("protocol", info[b"proto"], protocol)
    try:
        await client.incr("hash")
        sys.exit("INCR of a hash returned no error")
    except redis.ResponseError as error:
        check("error", str(error).startswith("WRONGTYPE"), True)


async def blocking_commands(client):
    waiting = [asyncio.create_task(client.blpop(["jobs"], timeout=PATIENCE_S)) for _ in range(5)]
    for number in range(5):
        await client.rpush("jobs", number)
    taken = sorted(job[1] for job in await asyncio.gather(*waiting))
    check("jobs", taken, [b"0", b"1", b"2", b"3", b"4"])
    check("a timeout", await client.blpop(["jobs"], timeout=0.05), None)
    await client.xgroup_create("stream", "group", id="0", mkstream=True)
    reading = asyncio.create_task(client.xreadgroup("group", "me", {"stream": ">"}, block=PATIENCE_S * 1000))
    await client.xadd("stream", {"field": "value"})
    entries = await reading
    entries = list(entries.values())[0] if isinstance(entries, dict) else entries[0][1]
    while isinstance(entries[0], list):
        entries = entries[0]
    check("entry", entries[0][1], {b"field": b"value"})


async def messages(client):
    heard = []
    ready, done = asyncio.Event(), asyncio.Event()

    async def listen():
        async with client.pubsub() as pubsub:
            await pubsub.subscribe("news")
            await pubsub.psubscribe("ne*")
            async for message in pubsub.listen():
                if message["type"].endswith("subscribe"):
                    if message["data"] == 2:
                        ready.set()
                    continue
                heard.append((message["type"], message["data"]))
                if len(heard) == 200:
                    done.set()
                    return

    listener = asyncio.create_task(listen())
    await asyncio.wait_for(ready.wait(), PATIENCE_S)
    for number in range(100):
        check("receivers", await client.publish("news", number), 2)
    await asyncio.wait_for(done.wait(), PATIENCE_S)
    await listener
    for kind in ("message", "pmessage"):
        check(kind, [int(data) for name, data in heard if name == kind], list(range(100)))


async def locks_and_watches(client):
    async def add_one():
        async with client.lock("lock", timeout=PATIENCE_S):
            await client.set("guarded", int(await client.get("guarded") or 0) + 1)

    await asyncio.gather(*(add_one() for _ in range(20)))
    check("guarded", await client.get("guarded"), b"20")

    async def add_if_unchanged():
        async with client.pipeline() as pipeline:
            while True:
                try:
                    await pipeline.watch("watched")
                    value = int(await pipeline.get("watched") or 0)
                    pipeline.multi()
                    await pipeline.set("watched", value + 1).execute()
                    return
                except redis.WatchError:
                    continue

    await asyncio.gather(*(add_if_unchanged() for _ in range(10)))
    check("watched", await client.get("watched"), b"10")
    script = client.register_script("return redis.call('INCRBY', KEYS[1], ARGV[1])")
    check("script", await script(keys=["scripted"], args=[5]), 5)


async def main():
    port, path = int(sys.argv[1]), sys.argv[2]
    for protocol in (2, 3):
        for place in (f"redis://127.0.0.1:{port}", f"unix://{path}"):
            pool = aioredis.BlockingConnectionPool.from_url(place, max_connections=30, protocol=protocol)
            async with aioredis.Redis.from_pool(pool) as client:
                await client.flushall()
                await many_at_once(client)
                await types_map_to_python_types(client, protocol)
                await blocking_commands(client)
                await messages(client)
                await locks_and_watches(client)
    print("redis-py with asyncio", redis.__version__, "ok")


asyncio.run(main())
