//! The eviction clocks of keys when they are created and when they are used.

use super::ghosts;
use super::policy::{
    CLOCK_MASK, EvictionPolicy, LFU_INITIAL, LRU_TICK_MS, idle_seconds_at, lfu_counter_at, lfu_minutes,
    lru_now,
};
use crate::turn::Turn;

impl Turn {
    /// Returns the eviction clock of a key that is created now.
    #[inline]
    pub fn new_clock(&self) -> u32 {
        if self.settings.policy.counts_uses() {
            self.frequency_clock(if self.settings.policy.has_ghosts() { 0 } else { LFU_INITIAL })
        } else {
            lru_now(self.clock_ms())
        }
    }

    /// Returns the eviction clock of a key after a use now; `clock` is the clock before the use.
    #[inline]
    pub fn touched_clock(&mut self, clock: u32) -> u32 {
        if self.settings.policy.counts_uses() { self.counted_clock(clock) } else { lru_now(self.clock_ms()) }
    }

    /// Returns the eviction clock after a use, under a policy that counts uses.
    fn counted_clock(&mut self, clock: u32) -> u32 {
        let mut counter = self.frequency(clock);
        if self.settings.policy.has_ghosts() {
            return self.counted_up(counter);
        }
        if counter < u8::MAX {
            let base = f64::from(counter.saturating_sub(LFU_INITIAL));
            if self.random.unit() < 1.0 / (base * f64::from(self.settings.lfu_log_factor) + 1.0) {
                counter += 1;
            }
        }
        self.frequency_clock(counter)
    }

    /// Returns the clock of a key with this counter after a use, under the policy with ghosts.
    fn counted_up(&self, counter: u8) -> u32 {
        self.frequency_clock(counter + u8::from(counter < ghosts::COUNTER_MAX))
    }

    /// Returns the counter of uses in `clock`, decayed until now: the reply of `OBJECT FREQ`.
    pub fn frequency(&self, clock: u32) -> u8 {
        if self.settings.policy.has_ghosts() {
            ghosts::counter_at(self.now_tick, clock)
        } else {
            lfu_counter_at(self.clock_ms(), self.settings.lfu_decay_minutes, clock)
        }
    }

    /// Returns the eviction clock of a key that is created after it was evicted with this counter of uses: the creation
    /// counts as a use, too. `clock` is the clock of the key without its ghost.
    pub(crate) fn recalled_clock(&self, clock: u32, counter: u8) -> u32 {
        self.counted_up(counter.max(self.frequency(clock)))
    }

    /// Returns the seconds since the last use that `clock` records: the reply of `OBJECT IDLETIME`.
    pub fn idle_seconds(&self, clock: u32) -> u64 {
        idle_seconds_at(self.clock_ms(), clock)
    }

    /// Returns the eviction clock, under an LRU policy, of a key that was last used `seconds` ago; the time is capped
    /// at the range of the 24-bit clock.
    pub fn idle_clock(&self, seconds: u64) -> u32 {
        let ticks = seconds.saturating_mul(1000 / LRU_TICK_MS as u64).min(CLOCK_MASK.into());
        lru_now(self.clock_ms()).wrapping_sub(ticks as u32) & CLOCK_MASK
    }

    /// Returns the eviction clock, under a policy that counts uses, of a key with this counter.
    pub fn frequency_clock(&self, counter: u8) -> u32 {
        match self.settings.policy {
            EvictionPolicy::AllkeysGhosts => ghosts::clock_with(self.now_tick, counter),
            _ => lfu_minutes(self.clock_ms()) << 8 | u32::from(counter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eviction::policy::{ClockReading, EvictionPolicy};

    #[test]
    fn clocks_in_the_future_count_as_just_used() {
        let mut turn = Turn::new(1_700_000_000_000, 1);
        for policy in [EvictionPolicy::AllkeysLru, EvictionPolicy::VolatileLfu] {
            turn.settings.policy = policy;
            let reading = ClockReading { policy, lfu_decay_minutes: 1, now_ms: turn.now_ms, now_tick: 0 };
            let now = turn.new_clock();
            turn.now_ms += 3600 * 1000;
            let later = turn.new_clock();
            turn.now_ms -= 7200 * 1000;
            let before = turn.new_clock();
            turn.now_ms += 3600 * 1000;
            let is_lru = policy.is_lru();
            for (clock, idle_s, counter) in
                [(now, 0, LFU_INITIAL), (later, 0, LFU_INITIAL), (before, 3600, 0)]
            {
                assert_eq!(reading.idle_s(clock), is_lru.then_some(idle_s));
                assert_eq!(reading.frequency(clock), (!is_lru).then_some(counter));
            }
        }
    }
}
