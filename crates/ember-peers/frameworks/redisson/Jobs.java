import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.redisson.Redisson;
import org.redisson.api.GeoUnit;
import org.redisson.api.RAtomicLong;
import org.redisson.api.RBatch;
import org.redisson.api.RBlockingQueue;
import org.redisson.api.RBloomFilter;
import org.redisson.api.RBucket;
import org.redisson.api.RCountDownLatch;
import org.redisson.api.RDelayedQueue;
import org.redisson.api.RFuture;
import org.redisson.api.RGeo;
import org.redisson.api.RHyperLogLog;
import org.redisson.api.RLocalCachedMap;
import org.redisson.api.RLock;
import org.redisson.api.RMap;
import org.redisson.api.RMapCache;
import org.redisson.api.RPatternTopic;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RRateLimiter;
import org.redisson.api.RReadWriteLock;
import org.redisson.api.RScoredSortedSet;
import org.redisson.api.RScript;
import org.redisson.api.RSemaphore;
import org.redisson.api.RSet;
import org.redisson.api.RSetCache;
import org.redisson.api.RStream;
import org.redisson.api.RTopic;
import org.redisson.api.RTransaction;
import org.redisson.api.RateType;
import org.redisson.api.RedissonClient;
import org.redisson.api.StreamMessageId;
import org.redisson.api.TransactionOptions;
import org.redisson.api.options.LocalCachedMapOptions;
import org.redisson.api.stream.StreamAddArgs;
import org.redisson.api.stream.StreamCreateGroupArgs;
import org.redisson.api.stream.StreamReadGroupArgs;
import org.redisson.client.codec.ByteArrayCodec;
import org.redisson.client.codec.Codec;
import org.redisson.client.codec.IntegerCodec;
import org.redisson.client.codec.StringCodec;
import org.redisson.codec.CompositeCodec;
import org.redisson.config.Config;
import org.redisson.config.Protocol;

/** Typical use of Redisson, over RESP2 and RESP3, by several concurrent clients: Jobs PORT */
public class Jobs {
    static final int THREADS = 4;
    static final long TIME_LIMIT_S = 80;
    static final long PATIENCE_S = 20;
    /** A codec whose values HINCRBY can increment. */
    static final Codec NUMBERS = new CompositeCodec(StringCodec.INSTANCE, IntegerCodec.INSTANCE);

    static void check(String what, boolean holds) {
        if (!holds) {
            throw new AssertionError("check failed: " + what);
        }
    }

    static void equal(String what, Object got, Object wanted) {
        if (!wanted.equals(got)) {
            throw new AssertionError(what + ": got " + got + ", wanted " + wanted);
        }
    }

    interface Condition {
        boolean holds() throws Exception;
    }

    static void until(String what, Condition condition) throws Exception {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_S);
        while (!condition.holds()) {
            check(what, System.nanoTime() < end);
            Thread.sleep(5);
        }
    }

    interface Work {
        void run(RedissonClient client, int number) throws Exception;
    }

    /** Runs the work in several threads, which alternate between two clients; fails if one thread fails. */
    static void together(RedissonClient[] clients, Work work) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(THREADS);
        List<Future<?>> results = new ArrayList<>();
        for (int number = 0; number < THREADS; number++) {
            int me = number;
            results.add(threads.submit(() -> {
                work.run(clients[me % clients.length], me);
                return null;
            }));
        }
        for (Future<?> result : results) {
            result.get(PATIENCE_S, TimeUnit.SECONDS);
        }
        threads.shutdown();
    }

    /** Locks have one holder at a time, although the guarded operations are not atomic. */
    static void locks(RedissonClient[] clients) throws Exception {
        RBucket<Integer> guarded = clients[0].getBucket("guarded");
        guarded.set(0);
        together(clients, (client, me) -> {
            RLock lock = me < 2 ? client.getLock("lock") : client.getFairLock("fair");
            for (int round = 0; round < 25; round++) {
                lock.lock();
                try {
                    RBucket<Integer> bucket = client.getBucket(me < 2 ? "guarded" : "guarded fairly");
                    Integer value = bucket.get();
                    bucket.set(value == null ? 1 : value + 1);
                } finally {
                    lock.unlock();
                }
            }
        });
        equal("increments under a lock", guarded.get(), 50);
        equal("increments under a fair lock", clients[0].getBucket("guarded fairly").get(), 50);

        RLock lock = clients[0].getLock("short");
        check("a lock", lock.tryLock(0, 300, TimeUnit.MILLISECONDS));
        check("a lock again by its holder", lock.tryLock());
        equal("holds", lock.getHoldCount(), 2);
        together(new RedissonClient[] {clients[1]}, (client, me) -> {
            if (me == 0) {
                check("a held lock", !client.getLock("short").tryLock());
                check("an expired lock", client.getLock("short").tryLock(10, 1, TimeUnit.SECONDS));
            }
        });

        RReadWriteLock both = clients[0].getReadWriteLock("both");
        both.readLock().lock();
        check("a second reader", clients[1].getReadWriteLock("both").readLock().tryLock());
        together(new RedissonClient[] {clients[1]}, (client, me) ->
            check("no writer while there are readers", !client.getReadWriteLock("both").writeLock().tryLock()));
        both.readLock().unlock();
        clients[1].getReadWriteLock("both").readLock().unlock();
        check("a writer", both.writeLock().tryLock());
        both.writeLock().unlock();
    }

    static void semaphoresAndLatches(RedissonClient[] clients) throws Exception {
        check("permits", clients[0].getSemaphore("semaphore").trySetPermits(2));
        RPermitExpirableSemaphore expiring = clients[0].getPermitExpirableSemaphore("expiring permits");
        check("expiring permits", expiring.trySetPermits(1));
        RCountDownLatch latch = clients[0].getCountDownLatch("latch");
        check("a latch", latch.trySetCount(THREADS));
        AtomicInteger inside = new AtomicInteger();
        together(clients, (client, me) -> {
            RSemaphore semaphore = client.getSemaphore("semaphore");
            for (int round = 0; round < 10; round++) {
                semaphore.acquire();
                check("two at a time", inside.incrementAndGet() <= 2);
                inside.decrementAndGet();
                semaphore.release();
            }
            client.getCountDownLatch("latch").countDown();
            check("the latch opens", client.getCountDownLatch("latch").await(PATIENCE_S, TimeUnit.SECONDS));
        });
        equal("permits are released", clients[0].getSemaphore("semaphore").availablePermits(), 2);
        String permit = expiring.tryAcquire(0, 200, TimeUnit.MILLISECONDS);
        check("a permit", permit != null);
        check("no second permit", expiring.tryAcquire() == null);
        check("an expired permit", expiring.tryAcquire(PATIENCE_S, 10, TimeUnit.SECONDS) != null);

        RRateLimiter limiter = clients[0].getRateLimiter("limiter");
        check("a rate", limiter.trySetRate(RateType.OVERALL, 3, Duration.ofSeconds(2)));
        long granted = IntStream.range(0, 10).filter(number -> limiter.tryAcquire()).count();
        equal("the rate", granted, 3L);
    }

    static void maps(RedissonClient[] clients) throws Exception {
        RMapCache<String, String> cache = clients[0].getMapCache("cache");
        cache.put("stays", "1");
        cache.put("goes", "2", 150, TimeUnit.MILLISECONDS);
        cache.put("idle", "3", 0, TimeUnit.SECONDS, 150, TimeUnit.MILLISECONDS);
        equal("an entry with a time", cache.get("goes"), "2");
        equal("put if absent", cache.putIfAbsent("stays", "9"), "1");
        until("an entry expires", () -> cache.get("goes") == null);
        // Reading an idle entry would keep it.
        Thread.sleep(200);
        check("an idle entry expires", cache.get("idle") == null);
        equal("remaining entries", cache.readAllMap(), Map.of("stays", "1"));
        check("replace", cache.replace("stays", "1", "4") && !cache.replace("stays", "1", "5"));

        together(clients, (client, me) -> {
            RMap<String, Integer> map = client.getMap("map", NUMBERS);
            for (int round = 0; round < 50; round++) {
                map.addAndGet("sum", 1);
                check("once", map.fastPut(me + " " + round, round));
            }
        });
        RMap<String, Integer> map = clients[0].getMap("map", NUMBERS);
        equal("sum", map.get("sum"), 4 * 50);
        equal("size", map.size(), 201);
        int iterated = 0;
        for (String key : map.keySet()) {
            iterated += key.isEmpty() ? 0 : 1;
        }
        equal("iterated", iterated, 201);
        equal("removed", map.fastRemove("0 0", "0 1", "none"), 2L);

        LocalCachedMapOptions<String, String> options = LocalCachedMapOptions.<String, String>name("near");
        RLocalCachedMap<String, String> here = clients[0].getLocalCachedMap(options);
        RLocalCachedMap<String, String> there = clients[1].getLocalCachedMap(options);
        here.put("key", "old");
        equal("a near copy", there.get("key"), "old");
        here.put("key", "new");
        until("copies are invalidated", () -> "new".equals(there.get("key")));
        cache.destroy();
        here.destroy();
        there.destroy();
    }

    static void setsAndScores(RedissonClient[] clients) throws Exception {
        RScoredSortedSet<String> scores = clients[0].getScoredSortedSet("scores");
        together(clients, (client, me) -> {
            RScoredSortedSet<String> mine = client.getScoredSortedSet("scores");
            for (int number = 0; number < 50; number++) {
                check("added", mine.add(me * 50 + number, "player " + (me * 50 + number)));
                mine.addScore("everybody", 1);
            }
        });
        equal("a score that all threads increment", scores.getScore("everybody"), 200.0);
        equal("rank", scores.rank("player 10"), 10);
        equal("reverse rank", scores.revRank("player 199"), 1);
        equal("range", new ArrayList<>(scores.valueRange(0, 2)), List.of("player 0", "player 1", "player 2"));
        equal("by score", scores.count(10, true, 20, false), 10);
        equal("lowest", scores.pollFirst(), "player 0");
        ConcurrentHashMap<String, Integer> polled = new ConcurrentHashMap<>();
        together(clients, (client, me) -> {
            RScoredSortedSet<String> mine = client.getScoredSortedSet("scores");
            for (String member = mine.pollLast(); member != null; member = mine.pollLast()) {
                polled.merge(member, 1, Integer::sum);
            }
        });
        check("each is polled once", polled.size() == 200 && polled.values().stream().allMatch(count -> count == 1));

        RSet<Integer> left = clients[0].getSet("left");
        left.addAll(List.of(1, 2, 3, 4));
        RSet<Integer> right = clients[0].getSet("right");
        right.addAll(List.of(3, 4, 5));
        equal("intersection", left.readIntersection("right"), Set.of(3, 4));
        equal("union", left.readUnion("right"), Set.of(1, 2, 3, 4, 5));
        check("moved", left.move("right", 1));
        equal("moved", right.readAll(), Set.of(1, 3, 4, 5));
        RSetCache<String> cache = clients[0].getSetCache("set cache");
        check("added", cache.add("goes", 100, TimeUnit.MILLISECONDS) && cache.add("stays"));
        until("a member expires", () -> !cache.contains("goes"));
        // In the millisecond of its expiry, contains() already excludes a member, but a read of the set still includes it.
        Thread.sleep(2);
        equal("members", cache.readAll(), Set.of("stays"));
        cache.destroy();
        RGeo<String> places = clients[0].getGeo("places");
        places.add(13.361389, 38.115556, "Palermo");
        places.add(15.087269, 37.502669, "Catania");
        check("distance", Math.abs(places.dist("Palermo", "Catania", GeoUnit.KILOMETERS) - 166.27) < 0.1);
    }

    static void topics(RedissonClient[] clients) throws Exception {
        int count = 100;
        ConcurrentLinkedQueue<Integer> heard = new ConcurrentLinkedQueue<>();
        CountDownLatch patterns = new CountDownLatch(count);
        RTopic topic = clients[0].getTopic("topic:news");
        topic.addListener(Integer.class, (channel, message) -> heard.add(message));
        RPatternTopic pattern = clients[0].getPatternTopic("topic:*");
        pattern.addListener(Integer.class, (name, channel, message) -> patterns.countDown());
        RTopic publisher = clients[1].getTopic("topic:news");
        for (int number = 0; number < count; number++) {
            equal("receivers", publisher.publish(number), 2L);
        }
        until("all messages are received", () -> heard.size() == count);
        equal("messages", heard.stream().sorted().collect(Collectors.toList()),
            IntStream.range(0, count).boxed().collect(Collectors.toList()));
        check("patterns", patterns.await(PATIENCE_S, TimeUnit.SECONDS));
        topic.removeAllListeners();
        pattern.removeAllListeners();
    }

    @SuppressWarnings("deprecation") // RDelayedQueue is still in use.
    static void queuesAndStreams(RedissonClient[] clients) throws Exception {
        int count = 100;
        ConcurrentHashMap<Integer, Integer> taken = new ConcurrentHashMap<>();
        together(clients, (client, me) -> {
            RBlockingQueue<Integer> queue = client.getBlockingQueue("queue");
            if (me == 0) {
                for (int number = 0; number < count; number++) {
                    queue.add(number);
                }
                for (int number = 1; number < THREADS; number++) {
                    queue.add(-1);
                }
                return;
            }
            for (int job = queue.take(); job >= 0; job = queue.take()) {
                taken.merge(job, 1, Integer::sum);
            }
        });
        check("each job once", taken.size() == count && taken.values().stream().allMatch(times -> times == 1));
        RBlockingQueue<String> target = clients[0].getBlockingQueue("due");
        RDelayedQueue<String> delayed = clients[0].getDelayedQueue(target);
        long begun = System.nanoTime();
        delayed.offer("second", 300, TimeUnit.MILLISECONDS);
        delayed.offer("first", 100, TimeUnit.MILLISECONDS);
        equal("the first due", target.poll(PATIENCE_S, TimeUnit.SECONDS), "first");
        equal("the second due", target.poll(PATIENCE_S, TimeUnit.SECONDS), "second");
        check("not too early", System.nanoTime() - begun >= TimeUnit.MILLISECONDS.toNanos(300));
        delayed.destroy();

        RStream<String, String> stream = clients[0].getStream("stream");
        stream.createGroup(StreamCreateGroupArgs.name("group").makeStream());
        Set<StreamMessageId> added = new HashSet<>();
        for (int number = 0; number < count; number++) {
            added.add(stream.add(StreamAddArgs.entry("number", "" + number)));
        }
        Set<StreamMessageId> read = ConcurrentHashMap.newKeySet();
        together(clients, (client, me) -> {
            RStream<String, String> mine = client.getStream("stream");
            while (true) {
                Map<StreamMessageId, Map<String, String>> entries =
                    mine.readGroup("group", "consumer " + me, StreamReadGroupArgs.neverDelivered().count(7));
                // An empty result is null in RESP3.
                if (entries == null || entries.isEmpty()) {
                    return;
                }
                for (StreamMessageId id : entries.keySet()) {
                    check("an entry is delivered once", read.add(id));
                }
                equal("acknowledged", mine.ack("group", entries.keySet().toArray(new StreamMessageId[0])),
                    (long) entries.size());
            }
        });
        equal("entries", read, added);
        equal("pending", stream.getPendingInfo("group").getTotal(), 0L);
    }

    static void batchesTransactionsAndScripts(RedissonClient[] clients) throws Exception {
        RBatch batch = clients[0].createBatch();
        List<RFuture<Long>> replies = new ArrayList<>();
        for (int number = 0; number < 100; number++) {
            replies.add(batch.getAtomicLong("batched").incrementAndGetAsync());
        }
        batch.execute();
        equal("the last of a batch", replies.get(99).toCompletableFuture().get(), 100L);

        together(clients, (client, me) -> {
            RAtomicLong counter = client.getAtomicLong("counter");
            for (int round = 0; round < 50; round++) {
                counter.incrementAndGet();
            }
            for (int done = 0; done < 5;) {
                long value = client.getAtomicLong("optimistic").get();
                done += client.getAtomicLong("optimistic").compareAndSet(value, value + 1) ? 1 : 0;
            }
        });
        equal("a counter", clients[0].getAtomicLong("counter").get(), 200L);
        equal("compare and set", clients[0].getAtomicLong("optimistic").get(), 20L);

        RTransaction transaction = clients[0].createTransaction(TransactionOptions.defaults());
        transaction.getMap("in a transaction").put("key", "value");
        transaction.getBucket("bucket in a transaction").set("value");
        check("nothing before the commit", !clients[1].getMap("in a transaction").containsKey("key"));
        transaction.commit();
        equal("the commit", clients[1].getMap("in a transaction").get("key"), "value");

        RScript script = clients[0].getScript(StringCodec.INSTANCE);
        String text = "redis.call('SET', KEYS[1], ARGV[1]) return redis.call('STRLEN', KEYS[1])";
        Long length = script.eval(RScript.Mode.READ_WRITE, text, RScript.ReturnType.INTEGER, List.of("scripted"), "four");
        equal("a script", length, 4L);
        String sha = script.scriptLoad(text);
        equal("known scripts", script.scriptExists(sha), List.of(true));

        RHyperLogLog<Integer> seen = clients[0].getHyperLogLog("seen");
        seen.addAll(IntStream.range(0, 1000).boxed().collect(Collectors.toList()));
        check("an estimate", Math.abs(seen.count() - 1000) < 50);
        RBloomFilter<String> filter = clients[0].getBloomFilter("filter");
        check("a filter", filter.tryInit(1000, 0.01));
        check("new to the filter", filter.add("known"));
        check("known to the filter", filter.contains("known") && !filter.contains("unknown"));
        RBucket<byte[]> large = clients[0].getBucket("large", ByteArrayCodec.INSTANCE);
        byte[] bytes = new byte[1 << 20];
        Arrays.fill(bytes, (byte) 13);
        large.set(bytes, Duration.ofSeconds(100));
        check("a large value", Arrays.equals(large.get(), bytes));
        check("its time to live", large.remainTimeToLive() > 90_000);
    }

    interface Part {
        void run(RedissonClient[] clients) throws Exception;
    }

    static RedissonClient connect(int port, Protocol protocol) {
        Config config = new Config();
        config.setProtocol(protocol);
        config.useSingleServer().setAddress("redis://127.0.0.1:" + port)
            .setConnectionPoolSize(8).setConnectionMinimumIdleSize(2).setSubscriptionConnectionPoolSize(4);
        return Redisson.create(config);
    }

    public static void main(String[] arguments) throws Exception {
        int port = Integer.parseInt(arguments[0]);
        Thread limit = new Thread(() -> {
            try {
                Thread.sleep(TimeUnit.SECONDS.toMillis(TIME_LIMIT_S));
            } catch (InterruptedException over) {
                return;
            }
            System.err.println("not finished after " + TIME_LIMIT_S + " s");
            Runtime.getRuntime().halt(1);
        });
        limit.setDaemon(true);
        limit.start();
        try {
            for (Protocol protocol : new Protocol[] {Protocol.RESP2, Protocol.RESP3}) {
                RedissonClient[] clients = {connect(port, protocol), connect(port, protocol)};
                clients[0].getKeys().flushall();
                Map<String, Part> parts = Map.of("locks", Jobs::locks, "semaphores", Jobs::semaphoresAndLatches,
                    "maps", Jobs::maps, "sets", Jobs::setsAndScores, "topics", Jobs::topics,
                    "queues", Jobs::queuesAndStreams, "batches", Jobs::batchesTransactionsAndScripts);
                for (Map.Entry<String, Part> part : parts.entrySet()) {
                    long begun = System.nanoTime();
                    part.getValue().run(clients);
                    long milliseconds = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - begun);
                    System.out.println(protocol + " " + part.getKey() + ": " + milliseconds + " ms");
                }
                clients[0].shutdown();
                clients[1].shutdown();
            }
        } catch (Throwable failure) {
            failure.printStackTrace();
            System.exit(1);
        }
        System.out.println("Redisson ok");
        System.exit(0);
    }
}
