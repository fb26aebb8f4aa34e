"""Typical use of redis-py, over RESP2, RESP3 and a unix socket: smoke.py PORT SOCKET"""

import json
import sys

import redis


def check(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what}: got {got!r}, wanted {wanted!r}")


def smoke(client, protocol):
    check("ping", client.ping(), True)
    check("flush", client.flushdb(), True)
    check("set", client.set(b"bin\xff\x00", b"\x00\r\n\xff"), True)
    check("get", client.get(b"bin\xff\x00"), b"\x00\r\n\xff")
    check("missing", client.get("missing"), None)

    pipeline = client.pipeline(transaction=False)
    for number in range(1000):
        pipeline.set(f"key:{number}", number)
    check("pipeline", pipeline.execute(), [True] * 1000)
    check("mget", client.mget("key:1", "key:999", "none"), [b"1", b"999", None])

    check("incr", [client.incr("counter"), client.incrby("counter", 41)], [1, 42])
    check("float", client.incrbyfloat("float", 0.5), 0.5)
    check("nx", client.set("counter", 1, nx=True), None)
    check("expire", client.expire("counter", 100), True)
    check("ttl", 98 <= client.ttl("counter") <= 100, True)
    check("persist", [client.persist("counter"), client.ttl("counter")], [True, -1])

    found = {key for key in client.scan_iter(match="key:*", count=50)}
    check("scan", len(found), 1000)
    check("bits", [client.setbit("bits", 7, 1), client.getbit("bits", 7), client.bitcount("bits")], [0, 1, 1])
    check("bitfield", client.bitfield("field").incrby("u8", 0, 200).execute(), [200])

    check("setname", client.client_setname("smoke"), True)
    check("getname", client.client_getname() in ("smoke", b"smoke"), True)
    check("info", isinstance(client.info(), dict), True)
    check("dbsize", client.dbsize(), 1005)

    try:
        client.execute_command("NOSUCHCOMMAND", "x")
        sys.exit("an unknown command returned no error")
    except redis.ResponseError as error:
        check("error", "unknown command 'NOSUCHCOMMAND'" in str(error), True)

    large = bytes(range(256)) * (5 * 1024 * 1024 // 256)
    check("large set", client.set("large", large), True)
    check("large get", client.get("large") == large, True)

    hello = client.execute_command("HELLO", protocol)
    hello = hello if isinstance(hello, dict) else dict(zip(hello[::2], hello[1::2]))
    check("protocol", hello.get(b"proto", hello.get("proto")), protocol)


def live(client, protocol):
    """Watches an increasing number: states are pushes with RESP3, and channel messages with RESP2."""
    check("price", client.set("price", 10), True)
    pushed = []
    states = client.pubsub(push_handler_func=pushed.append if protocol == 3 else None)
    if protocol == 3:
        states.execute_command("GET.WATCH", "price")
        first = states.parse_response(block=True)
        check("fingerprint", first[b"fingerprint"], b"3058063992")
        check("first", first[b"result"], b"10")
    else:
        database = client.connection_pool.connection_kwargs.get("db", 0)
        states.subscribe(f"__watch@{database}__:GET price")
        check("subscribed", states.get_message(timeout=10)["type"], "subscribe")
        check("first", json.loads(states.get_message(timeout=10)["data"])["result"], "10")
    for price in (11, 12, 13):
        check("incr", client.incr("price"), price)
        if protocol == 3:
            states.parse_response(block=True)
            kind, _, _, result = pushed.pop()
            check("push", [kind, int(result)], [b"watch", price])
        else:
            check("state", json.loads(states.get_message(timeout=10)["data"])["result"], str(price))
    states.close()


def main():
    port, path = int(sys.argv[1]), sys.argv[2]
    for protocol in (2, 3):
        smoke(redis.Redis(port=port, protocol=protocol), protocol)
        smoke(redis.Redis(port=port, protocol=protocol, db=5), protocol)
        smoke(redis.Redis(unix_socket_path=path, protocol=protocol), protocol)
        live(redis.Redis(port=port, protocol=protocol), protocol)
        live(redis.Redis(port=port, protocol=protocol, db=5), protocol)
    print("redis-py", redis.__version__, "ok")


main()
