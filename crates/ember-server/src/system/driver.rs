//! The driver of a worker's event loop: edge-triggered readiness of sockets, a bell by which other threads wake the
//! worker, and an alarm.
//!
//! This is the only file that depends on how the operating system reports readiness (epoll on Linux, kqueue on macOS,
//! through mio). Edge-triggered means that an event reports only a change of readiness, so a reader continues until a
//! read is short or would block. A registration lasts as long as the connection, so no system call is needed to re-arm
//! it.

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

/// The maximum number of events that one system call returns; further events are returned in the next turn.
const EVENTS_MAX: usize = 256;

const BELL: Token = Token(usize::MAX);

/// A change of a registered descriptor's readiness.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Readiness {
    /// The token with which the descriptor was registered.
    pub(crate) token: usize,
    /// Whether the descriptor may be readable, which includes the end of input and errors.
    pub(crate) readable: bool,
    /// Whether the descriptor may be writable, which includes errors.
    pub(crate) writable: bool,
    /// Whether the peer has closed its sending side; reading must then continue after a short read.
    pub(crate) read_closed: bool,
}

/// A handle with which any thread can wake the worker that it belongs to.
#[derive(Clone)]
pub(crate) struct Bell(Arc<Waker>);

impl Bell {
    /// Wakes the worker immediately, or, if it is not waiting, at its next wait.
    pub(crate) fn ring(&self) {
        if let Err(error) = self.0.wake() {
            tracing::error!("cannot wake a worker: {error}");
        }
    }
}

/// A timer that wakes the worker, with a precision of less than a millisecond. epoll waits for whole milliseconds, and
/// setting a timer once costs less than a short timeout for each wait.
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
        // The minimum is 1 ns, because zero would disarm the timer.
        let nanoseconds = after.as_nanos().clamp(1, 999_999_999) as i64;
        let once = Itimerspec {
            it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: Timespec { tv_sec: 0, tv_nsec: nanoseconds },
        };
        // The timer is registered edge-triggered, so the number of expirations need not be read.
        timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &once)?;
        Ok(())
    }

    fn limit(&mut self, timeout: Duration) -> Duration {
        timeout
    }
}

/// The alarm on systems whose wait has sufficient precision.
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

/// The queue of readiness changes of one worker.
pub(crate) struct Driver {
    poll: Poll,
    events: Events,
    bell: Bell,
    /// The alarm, created when it is first set.
    alarm: Option<Alarm>,
}

impl Driver {
    /// Creates a driver without registered descriptors.
    ///
    /// # Errors
    /// Returns the system's error if it provides no event queue.
    pub(crate) fn new() -> io::Result<Driver> {
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), BELL)?);
        Ok(Driver { poll, events: Events::with_capacity(EVENTS_MAX), bell: Bell(waker), alarm: None })
    }

    /// Sets the alarm, which wakes the worker once after this time of less than a second. Replaces an earlier alarm.
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
    /// Returns the error of the system.
    pub(crate) fn watch(&self, descriptor: BorrowedFd<'_>, token: usize) -> io::Result<()> {
        let interest = Interest::READABLE | Interest::WRITABLE;
        self.poll.registry().register(&mut SourceFd(&descriptor.as_raw_fd()), Token(token), interest)
    }

    /// Waits until the readiness of a descriptor changes or `timeout` has passed, and calls `visit` with each change.
    ///
    /// # Errors
    /// Returns the error of the system. An interruption by a signal is not an error, but returns without changes.
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
