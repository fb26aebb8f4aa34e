// A live query with ioredis: live.js PORT
'use strict';

const { createRequire } = require('node:module');
const path = require('node:path');
// Elsewhere: const Redis = require('ioredis');
const load = createRequire(path.join(process.env.PEER_MODULES ?? __dirname, 'package.json'));
const { Redis } = load('ioredis');

const port = Number(process.argv[2]);
const [client, states] = [new Redis(port), new Redis(port)];

states.on('message', async (channel, message) => {
  const state = JSON.parse(message);
  console.log(state.version, state.result);
  if (state.result === '13') {
    client.disconnect();
    states.disconnect();
  } else {
    await client.incr('price');
  }
});

client.set('price', 10).then(() => states.subscribe('__watch@0__:GET price'));
