// A live query with go-redis: live PORT
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/redis/go-redis/v9"
)

func main() {
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + os.Args[1]})
	defer client.Close()
	client.Set(ctx, "price", 10, 0)

	states := client.Subscribe(ctx, "__watch@0__:GET price")
	defer states.Close()
	for message := range states.Channel() {
		var state struct{ Version, Result string }
		if err := json.Unmarshal([]byte(message.Payload), &state); err != nil {
			panic(err)
		}
		fmt.Println(state.Version, state.Result)
		if state.Result == "13" {
			return
		}
		client.Incr(ctx, "price")
	}
}
