// Typical use of node-redis, over RESP2, RESP3 and a unix socket: smoke.js PORT SOCKET
'use strict';

const assert = require('node:assert/strict');
const { createRequire } = require('node:module');
const path = require('node:path');

// The modules are installed outside the source tree.
const load = createRequire(path.join(process.env.PEER_MODULES, 'package.json'));
const { createClient, RESP_TYPES } = load('redis');

async function smoke(options) {
  const client = createClient(options);
  client.on('error', (error) => { throw error; });
  await client.connect();
  assert.equal(await client.ping(), 'PONG');
  assert.equal(await client.flushDb(), 'OK');

  const binary = Buffer.from([0, 13, 10, 255]);
  assert.equal(await client.set('binary', binary), 'OK');
  const buffers = client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });
  assert.deepEqual(await buffers.get('binary'), binary);
  assert.equal(await client.get('missing'), null);

  const sets = [];
  for (let number = 0; number < 1000; number++) sets.push(client.set(`key:${number}`, `${number}`));
  assert.deepEqual(new Set(await Promise.all(sets)), new Set(['OK']));
  assert.deepEqual(await client.mGet(['key:1', 'key:999', 'none']), ['1', '999', null]);

  assert.equal(await client.incr('counter'), 1);
  assert.equal(await client.expire('counter', 100), 1);
  const ttl = await client.ttl('counter');
  assert.ok(ttl >= 98 && ttl <= 100, `ttl ${ttl}`);
  assert.equal(await client.persist('counter'), 1);

  const found = new Set();
  for await (const keys of client.scanIterator({ MATCH: 'key:*', COUNT: 50 })) {
    for (const key of keys) found.add(key);
  }
  assert.equal(found.size, 1000);

  assert.equal(await client.setBit('bits', 7, 1), 0);
  assert.equal(await client.getBit('bits', 7), 1);
  assert.equal(await client.bitCount('bits'), 1);

  assert.equal(await client.sendCommand(['CLIENT', 'SETNAME', 'smoke']), 'OK');
  assert.equal(await client.clientGetName(), 'smoke');
  await client.select(3);
  assert.equal(await client.get('key:1'), null);
  await client.select(0);
  await assert.rejects(client.sendCommand(['NOSUCHCOMMAND', 'x']), /unknown command 'NOSUCHCOMMAND'/);

  const large = 'x'.repeat(5 * 1024 * 1024);
  assert.equal(await client.set('large', large), 'OK');
  assert.equal(await client.get('large'), large);
  await client.close();
}

// Watches an increasing number through a channel: node-redis exposes no other pushes.
async function live(options) {
  const client = createClient(options);
  const states = client.duplicate();
  await Promise.all([client.connect(), states.connect()]);
  await client.set('price', '10');
  const results = [];
  await new Promise((resolve, reject) => {
    states.subscribe('__watch@0__:GET price', (message) => {
      results.push(JSON.parse(message).result);
      if (results.at(-1) === '13') resolve();
      else client.incr('price').catch(reject);
    }).catch(reject);
  });
  assert.deepEqual(results, ['10', '11', '12', '13']);
  await states.unsubscribe();
  await Promise.all([client.close(), states.close()]);
}

async function main() {
  const [port, socket] = process.argv.slice(2);
  for (const RESP of [2, 3]) {
    await smoke({ RESP, socket: { host: '127.0.0.1', port: Number(port) } });
    await smoke({ RESP, socket: { path: socket } });
    await live({ RESP, socket: { host: '127.0.0.1', port: Number(port) } });
  }
  console.log('node-redis ok');
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
