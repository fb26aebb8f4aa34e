//! Lanes: queues of ordered units of work that several threads run.
//!
//! Each resource has a lane, and a unit is in the lanes of all resources that it accesses. The units of one lane run
//! one after the other, in their order. A unit in several lanes is represented in each of them by a token. A lane that
//! reaches the token pauses there; the thread whose lane is the last to reach it runs the unit. So units that share a
//! lane run in order, and each unit runs as a whole.
//!
//! No thread waits for a lane: at a token, a thread takes another lane that can continue. The thread that calls
//! [`Lanes::lead`], the *leader*, works until all units are run. The leader needs no helpers; helpers only reduce the
//! time. The unit with the lowest number among those that are not run is at the head of all its lanes, so some lane can
//! always continue.

use crate::sync::{AtomicBool, Mutex, Ordering, yield_now};

/// The placeholder for the token of a unit that is in one lane only.
const ONE_LANE: u32 = u32::MAX;

/// A unit's entry in one of its lanes.
#[derive(Clone, Copy, Debug)]
struct Place {
    unit: u32,
    token: u32,
}

/// Units with their lanes, collected before the units are run.
#[derive(Debug)]
pub struct Plan {
    lanes: Vec<Vec<Place>>,
    /// The lanes of each unit that is in several lanes, at the index of its token.
    tokens: Vec<Vec<usize>>,
    units: u32,
}

impl Plan {
    /// Returns a plan with this number of lanes and without units.
    pub fn new(lanes: usize) -> Plan {
        Plan { lanes: vec![Vec::new(); lanes], tokens: Vec::new(), units: 0 }
    }

    /// Returns the number of units in the plan.
    pub fn len(&self) -> usize {
        self.units as usize
    }

    /// Returns whether the plan contains no units.
    pub fn is_empty(&self) -> bool {
        self.units == 0
    }

    /// Adds the next unit, which is in one lane only.
    #[inline]
    pub fn add(&mut self, lane: usize) {
        self.lanes[lane].push(Place { unit: self.units, token: ONE_LANE });
        self.units += 1;
    }

    /// Adds the next unit, which is in these lanes; sorts them and removes duplicates.
    ///
    /// # Panics
    /// Panics if `lanes` is empty.
    pub fn add_to_all(&mut self, mut lanes: Vec<usize>) {
        lanes.sort_unstable();
        lanes.dedup();
        assert!(!lanes.is_empty(), "a unit is in a lane");
        if let [lane] = lanes[..] {
            return self.add(lane);
        }
        let token = self.tokens.len() as u32;
        lanes.iter().for_each(|&lane| self.lanes[lane].push(Place { unit: self.units, token }));
        self.tokens.push(lanes);
        self.units += 1;
    }
}

/// The state of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The lane can continue at this place, and no thread runs it.
    Free(usize),
    /// A thread runs the lane.
    Running,
    /// The lane is paused at the token at this place, until the other lanes of the token have reached it and its unit
    /// is run.
    Standing(usize),
    /// All units of the lane are run.
    Done,
}

#[derive(Debug)]
struct State {
    stages: Vec<Stage>,
    /// For each token, the number of lanes that have not reached it.
    missing: Vec<usize>,
    running: usize,
    done: usize,
}

/// The functions with which one thread runs units.
pub trait Runner {
    /// Runs a unit; `following` contains the numbers of the units that follow in its lane. Returns false if the unit
    /// has failed: then no further unit is begun.
    fn run(&mut self, unit: usize, following: Following<'_>) -> bool;

    /// Releases the locks that units on other threads may wait for; called at tokens and at the end of a lane.
    fn rest(&mut self);
}

/// The units that follow a unit in its lane.
#[derive(Clone, Copy, Debug)]
pub struct Following<'l>(&'l [Place]);

impl Following<'_> {
    /// Returns the number of following units.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether no units follow.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of the following unit at this distance; 0 is the next unit.
    pub fn get(&self, distance: usize) -> Option<usize> {
        self.0.get(distance).map(|place| place.unit as usize)
    }
}

/// Lanes whose units several threads run; see the module documentation.
#[derive(Debug)]
pub struct Lanes {
    plan: Plan,
    state: Mutex<State>,
    has_failed: AtomicBool,
}

impl Lanes {
    /// Returns the lanes of a plan, whose units can be run from now on.
    pub fn new(plan: Plan) -> Lanes {
        let stages: Vec<Stage> = plan
            .lanes
            .iter()
            .map(|lane| if lane.is_empty() { Stage::Done } else { Stage::Free(0) })
            .collect();
        let done = stages.iter().filter(|stage| **stage == Stage::Done).count();
        let missing = plan.tokens.iter().map(Vec::len).collect();
        let state = State { stages, missing, running: 0, done };
        Lanes { plan, state: Mutex::new(state), has_failed: AtomicBool::new(false) }
    }

    /// Returns the number of lanes that contain units.
    pub fn busy_lanes(&self) -> usize {
        self.plan.lanes.iter().filter(|lane| !lane.is_empty()).count()
    }

    /// Runs units as a helper, as long as a lane can continue; prefers the lane `first`.
    pub fn help(&self, first: usize, runner: &mut impl Runner) {
        while let Some((lane, at)) = self.take(first) {
            self.run_lane(lane, at, runner);
        }
    }

    /// Runs units as the leader, until all units are run, including those that other threads run. Returns false if a
    /// unit has failed: then later units may or may not have been run.
    pub fn lead(&self, first: usize, runner: &mut impl Runner) -> bool {
        loop {
            self.help(first, runner);
            {
                let state = self.state.lock();
                let is_over = match self.has_failed.load(Ordering::SeqCst) {
                    true => state.running == 0,
                    false => state.done == state.stages.len(),
                };
                if is_over {
                    return !self.has_failed.load(Ordering::SeqCst);
                }
            }
            yield_now();
        }
    }

    /// Takes a lane that can continue, and returns it with its place; prefers the lane `first`.
    fn take(&self, first: usize) -> Option<(usize, usize)> {
        let mut state = self.state.lock();
        if self.has_failed.load(Ordering::SeqCst) {
            return None;
        }
        let lanes = state.stages.len();
        let lane =
            (first..first + lanes).map(|lane| lane % lanes).find(|&lane| state.stages[lane].is_free())?;
        let Stage::Free(at) = state.stages[lane] else { return None };
        state.stages[lane] = Stage::Running;
        state.running += 1;
        Some((lane, at))
    }

    /// Runs a lane to its end, or to the first token that other lanes have not reached yet.
    fn run_lane(&self, lane: usize, mut at: usize, runner: &mut impl Runner) {
        let places = &self.plan.lanes[lane];
        while let Some(place) = places.get(at) {
            if self.has_failed.load(Ordering::SeqCst) {
                break;
            }
            if place.token != ONE_LANE {
                runner.rest();
                if !self.arrive_at(lane, at, place.token) {
                    return;
                }
            }
            if !runner.run(place.unit as usize, Following(&places[at + 1..])) {
                self.has_failed.store(true, Ordering::SeqCst);
                break;
            }
            if place.token != ONE_LANE {
                runner.rest();
                self.continue_after(lane, place.token);
            }
            at += 1;
        }
        runner.rest();
        let mut state = self.state.lock();
        state.stages[lane] = Stage::Done;
        state.running -= 1;
        state.done += 1;
    }

    /// Records that a lane has reached a token; returns whether it is the last lane of the token. Otherwise the lane is
    /// paused at the token.
    fn arrive_at(&self, lane: usize, at: usize, token: u32) -> bool {
        let mut state = self.state.lock();
        let missing = &mut state.missing[token as usize];
        *missing -= 1;
        if *missing == 0 {
            return true;
        }
        state.stages[lane] = Stage::Standing(at);
        state.running -= 1;
        false
    }

    /// Makes the other lanes of a token continue after its unit was run.
    fn continue_after(&self, lane: usize, token: u32) {
        let mut state = self.state.lock();
        for &other in self.plan.tokens[token as usize].iter().filter(|&&other| other != lane) {
            let Stage::Standing(at) = state.stages[other] else {
                unreachable!("the last lane to come runs the unit");
            };
            state.stages[other] = match at + 1 < self.plan.lanes[other].len() {
                true => Stage::Free(at + 1),
                false => {
                    state.done += 1;
                    Stage::Done
                }
            };
        }
    }
}

impl Stage {
    fn is_free(self) -> bool {
        matches!(self, Stage::Free(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A runner for tests: records the units that it runs, and fails at one of them.
    #[derive(Default)]
    struct Notes {
        run: Vec<usize>,
        fails_at: Option<usize>,
    }

    impl Runner for Notes {
        fn run(&mut self, unit: usize, _: Following<'_>) -> bool {
            self.run.push(unit);
            self.fails_at != Some(unit)
        }

        fn rest(&mut self) {}
    }

    fn plan(units: &[&[usize]]) -> Plan {
        let mut plan = Plan::new(3);
        units.iter().for_each(|lanes| plan.add_to_all(lanes.to_vec()));
        plan
    }

    #[test]
    fn one_thread_runs_all_units_and_each_lane_in_order() {
        let units: [&[usize]; 8] = [&[2], &[0], &[1, 0], &[2], &[0], &[2, 1, 0], &[1], &[0, 0]];
        let lanes = Lanes::new(plan(&units));
        let mut notes = Notes::default();
        assert!(lanes.lead(1, &mut notes));
        let place = |unit: usize| notes.run.iter().position(|&other| other == unit).unwrap();
        for (later, of_later) in units.iter().enumerate() {
            for (earlier, of_earlier) in units.iter().enumerate().take(later) {
                if of_later.iter().any(|lane| of_earlier.contains(lane)) {
                    assert!(place(earlier) < place(later), "{earlier} before {later}: {:?}", notes.run);
                }
            }
        }
        assert_eq!(notes.run.len(), units.len());
        // A helper that starts late finds no lane to run.
        lanes.help(0, &mut notes);
        assert_eq!(notes.run.len(), units.len());
    }

    #[test]
    fn no_unit_starts_after_a_failure() {
        let lanes = Lanes::new(plan(&[&[0], &[0, 1], &[0], &[1]]));
        let mut notes = Notes { fails_at: Some(1), ..Notes::default() };
        assert!(!lanes.lead(0, &mut notes));
        assert_eq!(notes.run, [0, 1]);
    }

    #[test]
    fn a_plan_without_units_is_complete() {
        let lanes = Lanes::new(Plan::new(2));
        assert!(lanes.lead(0, &mut Notes::default()));
        assert_eq!(lanes.busy_lanes(), 0);
    }
}
