import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.json.JSONObject;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisPubSub;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.Protocol;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.params.ScanParams;
import redis.clients.jedis.params.SetParams;
import redis.clients.jedis.resps.ScanResult;

/** Typical use of Jedis, over RESP2 and RESP3: Smoke PORT. (Jedis cannot use Java's unix sockets.) */
public class Smoke {
    static void check(String what, boolean holds) {
        if (!holds) {
            System.err.println("check failed: " + what);
            System.exit(1);
        }
    }

    static void smoke(int port, RedisProtocol protocol) {
        DefaultJedisClientConfig config = DefaultJedisClientConfig.builder().protocol(protocol).build();
        try (Jedis jedis = new Jedis(new HostAndPort("127.0.0.1", port), config)) {
            check("ping", jedis.ping().equals("PONG"));
            check("flush", jedis.flushDB().equals("OK"));

            byte[] key = {0, 13, 10, (byte) 255};
            check("set", jedis.set(key, key).equals("OK"));
            check("get", Arrays.equals(jedis.get(key), key));
            check("missing", jedis.get("missing") == null);

            Pipeline pipeline = jedis.pipelined();
            for (int number = 0; number < 1000; number++) {
                pipeline.set("key:" + number, "" + number);
            }
            List<Object> replies = pipeline.syncAndReturnAll();
            check("pipeline", replies.size() == 1000 && replies.stream().allMatch("OK"::equals));
            check("mget", jedis.mget("key:1", "key:999", "none").equals(Arrays.asList("1", "999", null)));

            check("incr", jedis.incrBy("counter", 42) == 42);
            check("nx", jedis.set("counter", "1", SetParams.setParams().nx()) == null);
            check("expire", jedis.expire("counter", 100) == 1);
            check("ttl", jedis.ttl("counter") >= 98 && jedis.ttl("counter") <= 100);
            check("persist", jedis.persist("counter") == 1);

            Set<String> found = new HashSet<>();
            String cursor = ScanParams.SCAN_POINTER_START;
            do {
                ScanResult<String> page = jedis.scan(cursor, new ScanParams().match("key:*").count(50));
                found.addAll(page.getResult());
                cursor = page.getCursor();
            } while (!cursor.equals(ScanParams.SCAN_POINTER_START));
            check("scan", found.size() == 1000);

            check("setbit", !jedis.setbit("bits", 7, true));
            check("getbit", jedis.getbit("bits", 7));
            check("bitcount", jedis.bitcount("bits") == 1);

            check("setname", jedis.clientSetname("smoke").equals("OK"));
            check("getname", jedis.clientGetname().equals("smoke"));
            check("select", jedis.select(6).equals("OK"));
            check("other database", jedis.get("key:1") == null);
            check("back", jedis.select(0).equals("OK"));

            try {
                jedis.sendCommand(Protocol.Command.valueOf("GET"), "too", "many");
                check("an error for a wrong number of arguments", false);
            } catch (JedisDataException error) {
                check("error", error.getMessage().contains("wrong number of arguments for 'get' command"));
            }
            try {
                jedis.sendCommand(() -> "NOSUCHCOMMAND".getBytes(), "x");
                check("an error for an unknown command", false);
            } catch (JedisDataException error) {
                check("error", error.getMessage().contains("unknown command 'NOSUCHCOMMAND'"));
            }

            byte[] large = new byte[5 * 1024 * 1024];
            for (int index = 0; index < large.length; index++) {
                large[index] = (byte) index;
            }
            check("large set", jedis.set("large".getBytes(), large).equals("OK"));
            check("large get", Arrays.equals(jedis.get("large".getBytes()), large));
        }
    }

    /** Watches an increasing number through a channel: Jedis exposes no other pushes. */
    static void live(int port, RedisProtocol protocol) {
        DefaultJedisClientConfig config = DefaultJedisClientConfig.builder().protocol(protocol).build();
        HostAndPort place = new HostAndPort("127.0.0.1", port);
        List<String> results = new ArrayList<>();
        try (Jedis jedis = new Jedis(place, config); Jedis states = new Jedis(place, config)) {
            jedis.set("price", "10");
            states.subscribe(new JedisPubSub() {
                @Override
                public void onMessage(String channel, String message) {
                    String result = new JSONObject(message).getString("result");
                    results.add(result);
                    if (result.equals("13")) {
                        unsubscribe();
                    } else {
                        jedis.incr("price");
                    }
                }
            }, "__watch@0__:GET price");
        }
        check("live query", results.equals(Arrays.asList("10", "11", "12", "13")));
    }

    public static void main(String[] arguments) {
        int port = Integer.parseInt(arguments[0]);
        smoke(port, RedisProtocol.RESP2);
        smoke(port, RedisProtocol.RESP3);
        live(port, RedisProtocol.RESP2);
        live(port, RedisProtocol.RESP3);
        System.out.println("Jedis ok");
    }
}
