//! Locks and atomics: those of parking_lot and std or, in builds with `--cfg shuttle`, those of the model checker.

pub mod gate;
pub mod lanes;
pub mod mailbox;

pub use std::sync::atomic::Ordering;

#[cfg(shuttle)]
pub use shuttle::sync::atomic::{AtomicBool, AtomicU8};
#[cfg(not(shuttle))]
pub use std::sync::atomic::{AtomicBool, AtomicU8};

#[cfg(not(shuttle))]
pub use parking_lot::{Mutex, MutexGuard};

#[cfg(shuttle)]
pub use shuttle::thread::yield_now;
#[cfg(not(shuttle))]
pub use std::thread::yield_now;

#[cfg(shuttle)]
pub use modelled::Mutex;
#[cfg(shuttle)]
pub use shuttle::sync::MutexGuard;

#[cfg(shuttle)]
mod modelled {
    //! shuttle's mutex with the interface of parking_lot's mutex, which has no poisoning.
    use shuttle::sync::MutexGuard;

    /// A mutual exclusion lock whose schedule the model checker chooses.
    #[derive(Debug, Default)]
    pub struct Mutex<T>(shuttle::sync::Mutex<T>);

    impl<T> Mutex<T> {
        /// Returns a new, unlocked lock around `value`.
        pub fn new(value: T) -> Mutex<T> {
            Mutex(shuttle::sync::Mutex::new(value))
        }

        /// Waits until the lock is free and takes it.
        pub fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
        }

        /// Takes the lock if it is free; otherwise returns `None` at once.
        pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
            self.0.try_lock().ok()
        }
    }
}
