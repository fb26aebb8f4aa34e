//! Tickets: who has shown a password gets one for a URL, where a password must not stand. It is good for one stream, soon.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::control_plane::door::Credentials;
use crate::system::random_name::random_name;

/// How long a ticket may be used.
pub(super) const GOOD_FOR: Duration = Duration::from_secs(30);

/// Tickets that are not used yet, for all who ask.
const TICKETS_MAX: usize = 4096;

/// Those that are not used yet. The password is shown again when one is: what has changed meanwhile counts.
pub(super) struct Tickets(Mutex<BTreeMap<String, (Instant, Option<Credentials>)>>);

impl Tickets {
    pub(super) const fn new() -> Tickets {
        Tickets(Mutex::new(BTreeMap::new()))
    }

    /// A new ticket; none when there are too many, or the system has no random numbers.
    pub(super) fn issue(&self, credentials: Option<Credentials>, now: Instant) -> Option<String> {
        let ticket = random_name().ok()?;
        let mut tickets = self.0.lock();
        if tickets.len() >= TICKETS_MAX {
            tickets.retain(|_, (until, _)| *until > now);
        }
        if tickets.len() >= TICKETS_MAX {
            return None;
        }
        tickets.insert(ticket.clone(), (now + GOOD_FOR, credentials));
        Some(ticket)
    }

    /// Whose ticket it is, or was: it cannot be used again. None if it is none, any more.
    pub(super) fn redeem(&self, ticket: &str, now: Instant) -> Option<Option<Credentials>> {
        let (until, credentials) = self.0.lock().remove(ticket)?;
        (until > now).then_some(credentials)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_good_once_and_not_for_long() {
        let tickets = Tickets::new();
        let now = Instant::now();
        let credentials = Credentials { user: b"alice".to_vec(), password: b"secret".to_vec() };
        let ticket = tickets.issue(Some(credentials.clone()), now).unwrap();
        assert!(tickets.redeem("another", now).is_none());
        assert!(tickets.redeem(&ticket, now).flatten() == Some(credentials));
        assert!(tickets.redeem(&ticket, now).is_none());
        let ticket = tickets.issue(None, now).unwrap();
        assert!(tickets.redeem(&ticket, now + GOOD_FOR).is_none());
    }

    #[test]
    fn unused_tickets_take_bounded_memory() {
        let tickets = Tickets::new();
        let now = Instant::now();
        for _ in 0..TICKETS_MAX {
            assert!(tickets.issue(None, now).is_some());
        }
        assert!(tickets.issue(None, now).is_none());
        assert!(tickets.issue(None, now + GOOD_FOR).is_some());
        assert_eq!(tickets.0.lock().len(), 1);
    }
}
