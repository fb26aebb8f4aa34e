//! Lanes: ordered units of work, run by several threads.
//!
//! A unit is in the lanes of everything that it accesses. Units of one lane run one after the other, in their order. A
//! unit in several lanes is in each of them as a token; the thread that brings the last of these lanes up to it runs
//! it, while the other lanes are paused there. So units that share a lane keep their order, and each unit is run as a
//! whole.
//!
//! No thread waits for a lane: at a token, it takes another lane that can continue. The thread that began, the
//! *leader*, works until all units are run and needs no helper: helpers that come late, or never, only cost time. The
//! unit with the lowest number that is not run is at the head of all its lanes, so some lane can always continue.

use crate::sync::{AtomicBool, Mutex, Ordering, yield_now};

/// No token: a unit in one lane only.
const ONE_LANE: u32 = u32::MAX;

/// A unit's place in one of its lanes.
#[derive(Clone, Copy, Debug)]
struct Place {
    unit: u32,
    token: u32,
}

/// Units and their lanes, before they are run.
#[derive(Debug)]
pub struct Plan {
    lanes: Vec<Vec<Place>>,
    /// The lanes of each unit that is in several.
    tokens: Vec<Vec<usize>>,
    units: u32,
}

impl Plan {
    /// Returns a plan without units.
    pub fn new(lanes: usize) -> Plan {
        Plan { lanes: vec![Vec::new(); lanes], tokens: Vec::new(), units: 0 }
    }

    /// Returns the number of units.
    pub fn len(&self) -> usize {
        self.units as usize
    }

    /// Returns whether there are no units.
    pub fn is_empty(&self) -> bool {
        self.units == 0
    }

    /// Adds the next unit, which is in one lane.
    #[inline]
    pub fn add(&mut self, lane: usize) {
        self.lanes[lane].push(Place { unit: self.units, token: ONE_LANE });
        self.units += 1;
    }

    /// Adds the next unit, which is in these lanes; sorts them and removes duplicates.
    ///
    /// # Panics
    /// If there is no lane.
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
    /// It can continue at this place, and no thread runs it.
    Free(usize),
    /// A thread runs it.
    Running,
    /// It is paused at the token at this place until the other lanes have reached it and the unit is run.
    Standing(usize),
    /// All its units are run.
    Done,
}

#[derive(Debug)]
struct State {
    stages: Vec<Stage>,
    /// For each unit in several lanes, the number of lanes that have not reached it.
    missing: Vec<usize>,
    running: usize,
    done: usize,
}

/// Runs units on one thread.
pub trait Runner {
    /// Runs a unit; `following` are the numbers of those that follow it in its lane. Returns false if it failed: then
    /// no further unit is begun.
    fn run(&mut self, unit: usize, following: Following<'_>) -> bool;

    /// Releases the locks that other units may wait for.
    fn rest(&mut self);
}

/// The units after one in its lane.
#[derive(Clone, Copy, Debug)]
pub struct Following<'l>(&'l [Place]);

impl Following<'_> {
    /// Returns their number.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of the unit at this distance, 0 for the next one.
    pub fn get(&self, distance: usize) -> Option<usize> {
        self.0.get(distance).map(|place| place.unit as usize)
    }
}

/// See the module documentation.
#[derive(Debug)]
pub struct Lanes {
    plan: Plan,
    state: Mutex<State>,
    has_failed: AtomicBool,
}

impl Lanes {
    /// Returns lanes whose units can be run from now on.
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

    /// Returns the number of lanes with units.
    pub fn busy_lanes(&self) -> usize {
        self.plan.lanes.iter().filter(|lane| !lane.is_empty()).count()
    }

    /// Runs units as long as a lane can continue, preferring the lane `first`.
    pub fn help(&self, first: usize, runner: &mut impl Runner) {
        while let Some((lane, at)) = self.take(first) {
            self.run_lane(lane, at, runner);
        }
    }

    /// Runs all units and waits for those that other threads run. Returns false if one failed: then later units may or
    /// may not have been run.
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

    /// Takes a lane that can continue.
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

    /// Runs a lane to its end, or to the first token that other lanes have not reached.
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

    /// Brings a lane up to a token; returns whether it was the last one. Otherwise the lane is paused there.
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

    /// Continues the other lanes of a unit that was run.
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

    /// Records the units that it runs, and fails at one.
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
        // A thread that comes late finds nothing to do.
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
