"""What people do with redis-py, over RESP2, RESP3 and a unix socket: smoke.py PORT SOCKET"""

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
        sys.exit("an unknown command gave no error")
    except redis.ResponseError as error:
        check("error", "unknown command 'NOSUCHCOMMAND'" in str(error), True)

    large = bytes(range(256)) * (5 * 1024 * 1024 // 256)
    check("large set", client.set("large", large), True)
    check("large get", client.get("large") == large, True)

    hello = client.execute_command("HELLO", protocol)
    hello = hello if isinstance(hello, dict) else dict(zip(hello[::2], hello[1::2]))
    check("protocol", hello.get(b"proto", hello.get("proto")), protocol)


def main():
    port, path = int(sys.argv[1]), sys.argv[2]
    for protocol in (2, 3):
        smoke(redis.Redis(port=port, protocol=protocol), protocol)
        smoke(redis.Redis(port=port, protocol=protocol, db=5), protocol)
        smoke(redis.Redis(unix_socket_path=path, protocol=protocol), protocol)
    print("redis-py", redis.__version__, "ok")


main()
