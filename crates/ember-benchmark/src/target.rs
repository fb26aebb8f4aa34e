//! A server under test: its connections, the data that tests need, and the sequence of tests.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::arguments::{BenchmarkArguments, KeyPattern};
use super::engine::{self, Goal, Measured, Plan};
use super::facts::{Facts, Info};
use super::failure::Failure;
use super::key_patterns::{KEYS_MAX, Keys};
use super::link::{Link, connect};
use super::progress;
use super::recorder::Series;
use super::requests::Template;
use super::workload::{ELEMENT_PREFIX, LIST, Needs, SET, SORTED_SET, Workload, data, set_words};
use ember_client::{Address, Connection};

/// The pipeline for filling a server.
const FILL_PIPELINE: u32 = 128;

/// The maximum number of bytes sent at a time to fill a server.
const FILL_BYTES: u32 = 1 << 20;

/// The load of a test.
#[derive(Clone, Debug)]
pub(super) struct Load {
    pub(super) goal: Goal,
    pub(super) clients: u32,
    pub(super) pipeline: u32,
    pub(super) threads: u32,
    pub(super) rate: Option<f64>,
    /// Whether each batch uses a new connection.
    pub(super) reconnects: bool,
    pub(super) warm_up: Option<Duration>,
    pub(super) timeout: Duration,
}

impl Load {
    /// Returns the load that the options describe.
    pub(super) fn of(arguments: &BenchmarkArguments) -> Load {
        let options = &arguments.load;
        Load {
            goal: options.duration.map_or(Goal::Requests(options.requests), Goal::Time),
            clients: options.clients,
            pipeline: options.pipeline,
            // A thread without a connection would be idle.
            threads: options.threads.min(options.clients),
            rate: options.rate,
            reconnects: options.keep_alive == 0,
            warm_up: options.warm_up,
            timeout: options.timeout,
        }
    }

    fn plan(&self, goal: Goal, is_resp3: bool) -> Plan {
        Plan {
            goal,
            pipeline: self.pipeline,
            rate: self.rate,
            reconnects: self.reconnects,
            is_resp3,
            timeout: self.timeout,
        }
    }
}

/// The result of a test, and the load that was used.
#[derive(Clone, Debug)]
pub(super) struct TestResult {
    pub(super) name: String,
    pub(super) load: Load,
    pub(super) measured: Measured,
    /// Processor time that the server used during the test, if reported.
    pub(super) server_cpu: Option<Duration>,
    /// Threads of the server that serve clients, if reported.
    pub(super) server_threads: Option<u32>,
    /// Whether the server is on this machine and shares its processors.
    pub(super) is_local: bool,
}

/// A server under test.
pub(super) struct Target {
    pub(super) address: Address,
    pub(super) facts: Facts,
    control: Connection,
    keys: Keys,
    data: Vec<u8>,
    ttl: Option<u32>,
    is_resp3: bool,
    /// The minimum number of elements available to tests that remove elements.
    elements: u64,
    /// Whether all keys have been written, without an expiry.
    is_filled: bool,
}

impl Target {
    /// Connects to a server.
    ///
    /// # Errors
    /// Returns a message if the server is unreachable, or refuses the client.
    pub(super) fn open(address: Address, arguments: &BenchmarkArguments) -> Result<Target, Failure> {
        let is_resp3 = arguments.target.resp3;
        let mut control = connect(&address, is_resp3)?;
        let options = &arguments.work;
        let default_keys = if arguments.output.matrix.is_some() { arguments.load.requests } else { 1 };
        Ok(Target {
            facts: Facts::of(&mut control),
            address,
            control,
            keys: Keys::new(
                options.keys.unwrap_or(default_keys),
                options.key_pattern,
                options.distinct_seeds,
            ),
            data: data(options),
            ttl: options.ttl,
            is_resp3,
            elements: arguments.load.requests,
            is_filled: false,
        })
    }

    /// Returns the number of keys.
    pub(super) fn key_count(&self) -> u64 {
        self.keys.count()
    }

    /// Runs a test: creates the data it needs, warms up, measures.
    ///
    /// # Errors
    /// Returns a message if a connection breaks, the server sends nothing or invalid data, or the data for the test
    /// cannot be created.
    pub(super) fn measure(&mut self, workload: &Workload, load: &Load) -> Result<TestResult, Failure> {
        self.fill(&workload.needs, load)?;
        let mut links = self.open_links(load)?;
        let address = &self.address;
        if let Some(time) = load.warm_up {
            let series = Series::new(links.len());
            let plan = load.plan(Goal::Time(time), self.is_resp3);
            progress::show(&format!("{} (warming up)", workload.name), plan.goal, &series, || {
                engine::run(address, &mut links, workload, &plan, &series)
            })?;
        }
        let series = Series::new(links.len());
        let plan = load.plan(load.goal, self.is_resp3);
        let cpu_before = Info::of(&mut self.control).cpu();
        let measured = progress::show(&workload.name, plan.goal, &series, || {
            engine::run(address, &mut links, workload, &plan, &series)
        })?;
        let cpu_after = Info::of(&mut self.control).cpu();
        Ok(TestResult {
            name: workload.name.clone(),
            load: load.clone(),
            measured,
            server_cpu: cpu_after.zip(cpu_before).map(|(after, before)| after.saturating_sub(before)),
            server_threads: self.facts.threads,
            is_local: self.address.is_local(),
        })
    }

    /// Opens the connections of each thread.
    fn open_links(&self, load: &Load) -> Result<Vec<Vec<Link>>, Failure> {
        allow_sockets(load.clients);
        let keys = self.keys.again();
        let mut links: Vec<Vec<Link>> = (0..load.threads).map(|_| Vec::new()).collect();
        for index in 0..load.clients {
            let connection = connect(&self.address, self.is_resp3)?;
            let keys = keys.sequence(u64::from(index));
            let link = Link::new(connection, keys).map_err(|error| Failure::lost(&self.address, &error))?;
            links[(index % load.threads) as usize].push(link);
        }
        Ok(links)
    }

    fn fill(&mut self, needs: &Needs, load: &Load) -> Result<(), Failure> {
        let keys = self.keys.count();
        let words = |line: &str| line.split(' ').map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>();
        match needs {
            Needs::Nothing => Ok(()),
            Needs::Keys if self.is_filled => Ok(()),
            Needs::Keys => {
                self.send_all(&set_words(b"__key__", self.ttl), keys, load)?;
                self.is_filled = self.ttl.is_none();
                Ok(())
            }
            Needs::Strings(names) => {
                names.iter().try_for_each(|name| self.send_all(&set_words(name, self.ttl), keys, load))
            }
            Needs::List(count) => {
                let wanted = count.unwrap_or(self.elements);
                let answer = self.control.ask(&["LLEN", LIST]);
                let there = answer.ok().and_then(|answer| answer.integer()).unwrap_or(0).unsigned_abs();
                self.send_all(&words(&format!("LPUSH {LIST} __data__")), wanted.saturating_sub(there), load)
            }
            Needs::Set => {
                let line = format!("SADD {SET} {ELEMENT_PREFIX}__rand_int__");
                self.send_all(&words(&line), self.elements, load)
            }
            Needs::SortedSet => {
                let line = format!("ZADD {SORTED_SET} __rand_int__ {ELEMENT_PREFIX}__rand_int__");
                self.send_all(&words(&line), self.elements, load)
            }
        }
    }

    /// Sends a command `count` times, with consecutive key numbers.
    fn send_all(&self, words: &[Vec<u8>], count: u64, load: &Load) -> Result<(), Failure> {
        if count == 0 {
            return Ok(());
        }
        let template = Template::of_command(words, &self.data);
        let numbers = count.saturating_mul(template.hole_count().max(1) as u64).min(KEYS_MAX);
        let keys = Keys::new(numbers, KeyPattern::Sequential, false).sequence(0);
        let connection = connect(&self.address, self.is_resp3)?;
        let link = Link::new(connection, keys).map_err(|error| Failure::lost(&self.address, &error))?;
        let pipeline = FILL_PIPELINE.min(FILL_BYTES / (self.data.len() as u32).max(1)).max(1);
        let plan = Plan {
            goal: Goal::Requests(count),
            pipeline,
            rate: None,
            reconnects: false,
            is_resp3: self.is_resp3,
            timeout: load.timeout,
        };
        let workload = Workload {
            name: "filling".to_owned(),
            parts: vec![(template, 1)],
            reads: vec![false],
            needs: Needs::Nothing,
        };
        let (series, mut links) = (Series::new(1), [vec![link]]);
        let measured = progress::show(&workload.name, plan.goal, &series, || {
            engine::run(&self.address, &mut links, &workload, &plan, &series)
        })?;
        match measured.first_error {
            Some(text) => Err(Failure(format!("Cannot write the keys: {text}"))),
            None => Ok(()),
        }
    }
}

/// Raises the process's limit for open files as far as the system allows. If that is not enough, opening a connection
/// fails later.
pub(super) fn allow_sockets(clients: u32) {
    /// Number of open files other than the connections of clients.
    const OTHERS: u64 = 64;
    let limit = getrlimit(Resource::Nofile);
    let wanted = u64::from(clients) + OTHERS;
    if limit.current.is_some_and(|current| current < wanted) {
        let current = limit.maximum.map_or(wanted, |maximum| maximum.min(wanted));
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(current), maximum: limit.maximum });
    }
}
