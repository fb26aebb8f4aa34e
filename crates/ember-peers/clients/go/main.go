// Typical use of go-redis, over RESP2, RESP3 and a unix socket: main PORT SOCKET
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

func check(what string, err error, holds bool) {
	if err != nil || !holds {
		fmt.Fprintf(os.Stderr, "%s: error %v, holds %v\n", what, err, holds)
		os.Exit(1)
	}
}

func smoke(options *redis.Options) {
	ctx := context.Background()
	client := redis.NewClient(options)
	defer client.Close()

	pong, err := client.Ping(ctx).Result()
	check("ping", err, pong == "PONG")
	check("flush", client.FlushDB(ctx).Err(), true)

	binary := []byte{0, 13, 10, 255}
	check("set", client.Set(ctx, "bin\xff\x00", binary, 0).Err(), true)
	got, err := client.Get(ctx, "bin\xff\x00").Bytes()
	check("get", err, bytes.Equal(got, binary))
	check("missing", nil, client.Get(ctx, "missing").Err() == redis.Nil)

	replies, err := client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for number := 0; number < 1000; number++ {
			pipe.Set(ctx, "key:"+strconv.Itoa(number), number, 0)
		}
		return nil
	})
	check("pipeline", err, len(replies) == 1000)

	count, err := client.IncrBy(ctx, "counter", 42).Result()
	check("incr", err, count == 42)
	set, err := client.Expire(ctx, "counter", 100*time.Second).Result()
	check("expire", err, set)
	ttl, err := client.TTL(ctx, "counter").Result()
	check("ttl", err, ttl > 97*time.Second && ttl <= 100*time.Second)

	found := map[string]bool{}
	keys := client.Scan(ctx, 0, "key:*", 50).Iterator()
	for keys.Next(ctx) {
		found[keys.Val()] = true
	}
	check("scan", keys.Err(), len(found) == 1000)

	old, err := client.SetBit(ctx, "bits", 7, 1).Result()
	check("setbit", err, old == 0)
	bits, err := client.BitCount(ctx, "bits", nil).Result()
	check("bitcount", err, bits == 1)

	conn := client.Conn()
	defer conn.Close()
	check("setname", conn.ClientSetName(ctx, "smoke").Err(), true)
	name, err := conn.ClientGetName(ctx).Result()
	check("getname", err, name == "smoke")
	check("select", conn.Select(ctx, 4).Err(), true)
	check("other database", nil, conn.Get(ctx, "key:1").Err() == redis.Nil)

	err = client.Do(ctx, "NOSUCHCOMMAND", "x").Err()
	check("error", nil, err != nil && strings.Contains(err.Error(), "unknown command 'NOSUCHCOMMAND'"))

	large := bytes.Repeat([]byte("0123456789abcdef"), 5*1024*1024/16)
	check("large set", client.Set(ctx, "large", large, 0).Err(), true)
	got, err = client.Get(ctx, "large").Bytes()
	check("large get", err, bytes.Equal(got, large))
}

func main() {
	for _, protocol := range []int{2, 3} {
		smoke(&redis.Options{Addr: "127.0.0.1:" + os.Args[1], Protocol: protocol})
		smoke(&redis.Options{Network: "unix", Addr: os.Args[2], Protocol: protocol})
	}
	fmt.Println("go-redis ok")
}
