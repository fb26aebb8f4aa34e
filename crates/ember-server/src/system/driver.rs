//! The driver: edge-triggered readiness of sockets, the bell with which other threads wake a worker, and its alarm.
//!
//! This is the only file that depends on how the operating system reports readiness (epoll on Linux, kqueue on macOS,
//! through mio). Edge-triggered means that an event says only "it changed": a reader continues until a read is short or
//! would block. One registration lasts as long as the connection, so there is no system call to re-arm it.

use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::OwnedFd;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;
#[cfg(not(target_os = "linux"))]
use std::time::Instant;

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};
#[cfg(target_os = "linux")]
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

/// Events taken from the system at once; the others wait for the next turn.
const EVENTS_MAX: usize = 256;

const BELL: Token = Token(usize::MAX);

/// The readiness change of a registered descriptor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Readiness {
    /// The token it was registered with.
    pub(crate) token: usize,
    /// The descriptor may be readable, including an end or an error.
    pub(crate) readable: bool,
    /// The descriptor may be writable, including an error.
    pub(crate) writable: bool,
    /// The peer will send no more; a short read is then not the last one.
    pub(crate) read_closed: bool,
}

/// Wakes the worker that it belongs to, from any thread.
#[derive(Clone)]
pub(crate) struct Bell(Arc<Waker>);

impl Bell {
    /// Wakes the worker, now or the next time it waits.
    pub(crate) fn ring(&self) {
        if let Err(error) = self.0.wake() {
            tracing::error!("cannot wake a worker: {error}");
        }
    }
}

/// Wakes the worker at a time that may be less than a millisecond away: epoll waits for whole milliseconds, and setting
/// a timer once costs less than a short timeout for each wait.
#[cfg(target_os = "linux")]
struct Alarm(OwnedFd);

#[cfg(target_os = "linux")]
impl Alarm {
    fn new(poll: &Poll) -> io::Result<Alarm> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        poll.registry().register(&mut SourceFd(&timer.as_raw_fd()), BELL, Interest::READABLE)?;
        Ok(Alarm(timer))
    }

    fn set(&mut self, after: Duration) -> io::Result<()> {
        // A time of zero would disarm it.
        let nanoseconds = after.as_nanos().clamp(1, 999_999_999) as i64;
        let once = Itimerspec {
            it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: Timespec { tv_sec: 0, tv_nsec: nanoseconds },
        };
        // Its event is edge-triggered, so the number of expirations need not be read.
        timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &once)?;
        Ok(())
    }

    fn limit(&mut self, timeout: Duration) -> Duration {
        timeout
    }
}

/// The same on systems that wait with any precision.
#[cfg(not(target_os = "linux"))]
struct Alarm(Option<Instant>);

#[cfg(not(target_os = "linux"))]
impl Alarm {
    fn new(_: &Poll) -> io::Result<Alarm> {
        Ok(Alarm(None))
    }

    fn set(&mut self, after: Duration) -> io::Result<()> {
        self.0 = Some(Instant::now() + after);
        Ok(())
    }

    fn limit(&mut self, timeout: Duration) -> Duration {
        let left = self.0.map(|at| at.saturating_duration_since(Instant::now()));
        self.0 = self.0.filter(|_| left != Some(Duration::ZERO));
        left.map_or(timeout, |left| left.min(timeout))
    }
}

/// The readiness queue of one worker.
pub(crate) struct Driver {
    poll: Poll,
    events: Events,
    bell: Bell,
    /// Created when it is first set.
    alarm: Option<Alarm>,
}

impl Driver {
    /// Creates a driver without descriptors.
    ///
    /// # Errors
    /// Those of the system, if it provides no queue.
    pub(crate) fn new() -> io::Result<Driver> {
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), BELL)?);
        Ok(Driver { poll, events: Events::with_capacity(EVENTS_MAX), bell: Bell(waker), alarm: None })
    }

    /// Wakes the worker once after this time, which is less than a second; replaces an earlier alarm.
    pub(crate) fn set_alarm(&mut self, after: Duration) {
        if let Err(error) = self.try_set_alarm(after) {
            tracing::error!("cannot set a timer: {error}");
        }
    }

    fn try_set_alarm(&mut self, after: Duration) -> io::Result<()> {
        let alarm = match &mut self.alarm {
            Some(alarm) => alarm,
            none => none.insert(Alarm::new(&self.poll)?),
        };
        alarm.set(after)
    }

    /// Returns the bell that wakes [`Driver::wait`].
    pub(crate) fn bell(&self) -> Bell {
        self.bell.clone()
    }

    /// Watches a descriptor for reading and writing until it is closed.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn watch(&self, descriptor: BorrowedFd<'_>, token: usize) -> io::Result<()> {
        let interest = Interest::READABLE | Interest::WRITABLE;
        self.poll.registry().register(&mut SourceFd(&descriptor.as_raw_fd()), Token(token), interest)
    }

    /// Waits until something changes or `timeout` has passed, and passes each change to `visit`.
    ///
    /// # Errors
    /// Those of the system, except an interruption by a signal, which counts as no change.
    pub(crate) fn wait(&mut self, timeout: Duration, mut visit: impl FnMut(Readiness)) -> io::Result<()> {
        let timeout = self.alarm.as_mut().map_or(timeout, |alarm| alarm.limit(timeout));
        let polled = self.poll.poll(&mut self.events, Some(timeout));
        match polled {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            other => other?,
        }
        for event in self.events.iter().filter(|event| event.token() != BELL) {
            visit(Readiness {
                token: event.token().0,
                readable: event.is_readable() || event.is_error() || event.is_read_closed(),
                writable: event.is_writable() || event.is_error() || event.is_write_closed(),
                read_closed: event.is_read_closed() || event.is_error(),
            });
        }
        Ok(())
    }
}
