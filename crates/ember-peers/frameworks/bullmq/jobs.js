// Typical use of BullMQ, counting each job: jobs.js PORT
'use strict';

const assert = require('node:assert/strict');
const { once } = require('node:events');
const { createRequire } = require('node:module');
const path = require('node:path');
const { setTimeout: delay } = require('node:timers/promises');

// The modules are installed outside the source tree.
const load = createRequire(path.join(process.env.PEER_MODULES, 'package.json'));
const { FlowProducer, Queue, QueueEvents, Worker } = load('bullmq');

const TIME_LIMIT_MS = 60_000;
const port = Number(process.argv[2]);
const connection = { host: '127.0.0.1', port, maxRetriesPerRequest: null };
const open = [];

function fail(error) {
  console.error(error);
  process.exit(1);
}

setTimeout(() => fail(new Error(`not finished after ${TIME_LIMIT_MS} ms`)), TIME_LIMIT_MS).unref();

// Registers a resource, to be closed at the end in reverse order.
function keep(resource) {
  resource.on('error', fail);
  open.push(resource);
  return resource;
}

function worker(queue, work, options = {}) {
  return keep(new Worker(queue.name, work, { connection, ...options }));
}

async function queueWithEvents(name) {
  const queue = keep(new Queue(name, { connection }));
  const events = keep(new QueueEvents(name, { connection }));
  await events.waitUntilReady();
  return { queue, events };
}

// Polls until `holds` returns true.
async function until(what, holds) {
  const end = Date.now() + 20_000;
  while (!(await holds())) {
    assert.ok(Date.now() < end, `condition never met: ${what}`);
    await delay(10);
  }
}

function counter() {
  const counts = new Map();
  const add = (key) => counts.set(key, (counts.get(key) ?? 0) + 1);
  const assertOnce = (keys) => {
    assert.equal(counts.size, keys.length);
    for (const key of keys) assert.equal(counts.get(key), 1, `job ${key} counted ${counts.get(key)} times`);
  };
  return { counts, add, assertOnce };
}

async function manyWorkersDoEachJobOnce() {
  const { queue, events } = await queueWithEvents('many');
  const [started, completed] = [counter(), counter()];
  events.on('completed', ({ jobId, returnvalue }) => {
    assert.equal(returnvalue, `done ${jobId}`);
    completed.add(jobId);
  });
  const work = async (job) => {
    started.add(job.id);
    await job.updateProgress(50);
    await job.log('half of it');
    return `done ${job.id}`;
  };
  for (let number = 0; number < 4; number++) worker(queue, work, { concurrency: 5 });
  const ids = [];
  for (let batch = 0; batch < 10; batch++) {
    const jobs = Array.from({ length: 30 }, (_, number) => ({
      name: 'job',
      data: { batch, number, text: '\u20ac'.repeat(number) },
      opts: number % 3 === 0 ? { priority: 1 + (number % 7) } : {},
    }));
    ids.push(...(await queue.addBulk(jobs)).map((job) => job.id));
  }
  await until('all jobs are done', () => completed.counts.size >= ids.length);
  started.assertOnce(ids);
  completed.assertOnce(ids);
  const counts = await queue.getJobCounts();
  assert.equal(counts.completed, ids.length);
  for (const state of ['active', 'waiting', 'prioritized', 'delayed', 'failed']) assert.equal(counts[state], 0, state);
  const job = await queue.getJob(ids[7]);
  assert.deepEqual([job.progress, job.data.number, job.returnvalue], [50, 7, `done ${ids[7]}`]);
  assert.deepEqual((await queue.getJobLogs(ids[7])).logs, ['half of it']);
}

async function delayedJobsWait() {
  const { queue } = await queueWithEvents('delayed');
  const done = counter();
  worker(queue, async (job) => {
    const waited = Date.now() - job.timestamp;
    const { wait } = job.data;
    assert.ok(waited >= wait, `delayed by ${wait}, started after ${waited} ms`);
    done.add(job.id);
  }, { concurrency: 4 });
  const delays = [0, 50, 100, 200, 300, 400, 500, 600];
  const jobs = await Promise.all(delays.map((wait) => queue.add('later', { wait }, { delay: wait })));
  const far = await queue.add('much later', { wait: 0 }, { delay: 3_600_000 });
  await until('delayed jobs are done', () => done.counts.size >= jobs.length);
  assert.equal(await far.getState(), 'delayed');
  await far.promote();
  await until('the promoted job is done', () => far.isCompleted());
  done.assertOnce([...jobs, far].map((job) => job.id));
}

async function failedJobsAreRetried() {
  const { queue, events } = await queueWithEvents('retries');
  const tries = new Map();
  worker(queue, async (job) => {
    const times = tries.get(job.id) ?? [];
    tries.set(job.id, [...times, Date.now()]);
    if (times.length < job.data.failures) throw new Error(`try ${times.length + 1} fails`);
    return times.length + 1;
  });
  const options = { attempts: 3, backoff: { type: 'exponential', delay: 60 } };
  const job = await queue.add('twice', { failures: 2 }, options);
  assert.equal(await job.waitUntilFinished(events), 3);
  const [first, second, third] = tries.get(job.id);
  assert.ok(second - first >= 60 && third - second >= 120, `tried at ${tries.get(job.id)}`);
  const hopeless = await queue.add('always', { failures: 3 }, options);
  await assert.rejects(hopeless.waitUntilFinished(events), /try 3 fails/);
  assert.equal(await hopeless.getState(), 'failed');
  const kept = await queue.getJob(hopeless.id);
  assert.deepEqual([kept.attemptsMade, kept.stacktrace.length], [3, 3]);
  await kept.retry();
  await until('the job succeeds after a retry', () => kept.isCompleted());
}

async function prioritiesDecideTheOrder() {
  const { queue } = await queueWithEvents('priorities');
  await queue.pause();
  const priorities = [5, 3, 9, 3, 1, 9, 2, 1];
  for (const [number, priority] of priorities.entries()) await queue.add('job', { number }, { priority });
  await queue.add('job', { number: 'first' });
  await queue.add('job', { number: 'last in, first out' }, { lifo: true });
  const order = [];
  worker(queue, async (job) => order.push(job.data.number), { concurrency: 1 });
  await queue.resume();
  await until('all are done', () => order.length >= priorities.length + 2);
  assert.deepEqual(order, ['last in, first out', 'first', 4, 7, 6, 1, 3, 0, 2, 5]);
}

async function schedulersCreateJobs() {
  const { queue } = await queueWithEvents('schedulers');
  const runs = { every: [], cron: [] };
  // A job's ID ends with the time that it was due, in ms; it may be run later.
  worker(queue, async (job) => runs[job.data.kind].push(Number(job.id.split(':').at(-1))));
  await queue.upsertJobScheduler('every', { every: 150, limit: 5 }, { name: 'tick', data: { kind: 'every' } });
  await queue.upsertJobScheduler('cron', { pattern: '* * * * * *', limit: 2 }, { name: 'tick', data: { kind: 'cron' } });
  assert.equal((await queue.getJobSchedulers()).length, 2);
  await until('the schedulers have ended', () => runs.every.length >= 5 && runs.cron.length >= 2);
  await delay(400);
  assert.deepEqual([runs.every.length, runs.cron.length], [5, 2]);
  const between = runs.cron[1] - runs.cron[0];
  assert.ok(between >= 1000 && between % 1000 === 0 && runs.cron[0] % 1000 === 0, `cron at ${runs.cron}`);
  await queue.upsertJobScheduler('removed', { every: 3_600_000 }, { data: { kind: 'every' } });
  assert.equal(await queue.removeJobScheduler('removed'), true);
}

async function parentsWaitForChildren() {
  const { queue, events } = await queueWithEvents('parents');
  const { queue: steps } = await queueWithEvents('children');
  worker(steps, async (job) => job.data.value * 2, { concurrency: 3 });
  worker(queue, async (job) => Object.values(await job.getChildrenValues()).reduce((sum, value) => sum + value, 0));
  const flow = keep(new FlowProducer({ connection }));
  const children = [1, 2, 3, 4, 5].map((value) => ({ name: 'step', queueName: steps.name, data: { value } }));
  const tree = await flow.add({ name: 'sum', queueName: queue.name, children });
  assert.equal(await tree.job.waitUntilFinished(events), 30);
}

async function rateLimitsHold() {
  const { queue } = await queueWithEvents('limited');
  const times = [];
  const limiter = { max: 4, duration: 300 };
  for (let number = 0; number < 2; number++) worker(queue, async () => times.push(Date.now()), { limiter, concurrency: 4 });
  const begun = Date.now();
  await queue.addBulk(Array.from({ length: 12 }, () => ({ name: 'job', data: {} })));
  await until('all are done', () => times.length >= 12);
  // The third window opens 600 ms after the first, less a rounding of each.
  assert.ok(times[11] - begun >= 590, `12 jobs, 4 in 300 ms, took ${times[11] - begun} ms`);
}

async function jobsOfDeadWorkersAreTakenOver() {
  const { queue, events } = await queueWithEvents('stalled');
  const stalled = once(events, 'stalled');
  const options = { connection, lockDuration: 400, skipStalledCheck: true };
  const dying = new Worker(queue.name, () => new Promise(() => {}), options);
  dying.on('error', () => {});
  const job = await queue.add('job', {});
  await until('the job is begun', () => job.isActive());
  await dying.close(true);
  worker(queue, async () => 'taken over', { stalledInterval: 300, lockDuration: 400 });
  assert.equal(await job.waitUntilFinished(events), 'taken over');
  assert.equal((await stalled)[0].jobId, job.id);
}

async function duplicatesAreRefused() {
  const { queue } = await queueWithEvents('unique');
  const jobs = await Promise.all([1, 2, 3].map((number) => queue.add('job', { number }, { deduplication: { id: 'same' } })));
  assert.equal(new Set(jobs.map((job) => job.id)).size, 1);
  await queue.add('named', {}, { jobId: 'my name' });
  await queue.add('named', {}, { jobId: 'my name' });
  assert.equal((await queue.getJobCounts('waiting')).waiting, 2);
  await queue.drain();
  assert.equal((await queue.getJobCounts('waiting')).waiting, 0);
  await queue.obliterate({ force: true });
}

async function main() {
  const parts = [
    manyWorkersDoEachJobOnce, delayedJobsWait, failedJobsAreRetried, prioritiesDecideTheOrder, schedulersCreateJobs,
    parentsWaitForChildren, rateLimitsHold, jobsOfDeadWorkersAreTakenOver, duplicatesAreRefused,
  ];
  await Promise.all(parts.map(async (part) => {
    const begun = Date.now();
    await part().catch((error) => fail(`${part.name}: ${error.stack}`));
    console.log(`${part.name}: ${Date.now() - begun} ms`);
  }));
  for (const resource of open.reverse()) await resource.close();
  console.log('BullMQ ok');
}

main().catch(fail);
