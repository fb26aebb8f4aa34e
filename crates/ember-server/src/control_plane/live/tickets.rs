//! Tickets, which replace passwords in URLs. An authenticated user receives a ticket, which is valid for one stream and
//! a short time.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::control_plane::door::Credentials;
use crate::system::random_name::random_name;

/// The time for which a ticket is valid.
pub(super) const GOOD_FOR: Duration = Duration::from_secs(30);

/// The maximum number of unused tickets per user, which take about 200 kB. The limit is per user, so that no user can
/// prevent another from watching.
const TICKETS_MAX: usize = 1024;

/// The user of requests without a password.
const DEFAULT_USER: &[u8] = b"default";

/// All unused tickets. The password of a ticket's user is checked again when the ticket is used, so that changes since
/// then take effect.
pub(super) struct Tickets(Mutex<Unused>);

struct Unused {
    tickets: BTreeMap<String, Ticket>,
    /// The number of unused tickets per user.
    counts: BTreeMap<Vec<u8>, usize>,
}

struct Ticket {
    until: Instant,
    credentials: Option<Credentials>,
}

impl Ticket {
    fn user(&self) -> &[u8] {
        user_of(self.credentials.as_ref())
    }
}

fn user_of(credentials: Option<&Credentials>) -> &[u8] {
    credentials.map_or(DEFAULT_USER, |credentials| &credentials.user)
}

impl Unused {
    fn count_of(&self, user: &[u8]) -> usize {
        self.counts.get(user).copied().unwrap_or(0)
    }

    fn forget_old(&mut self, now: Instant) {
        self.tickets.retain(|_, ticket| ticket.until > now);
        self.counts.clear();
        for ticket in self.tickets.values() {
            *self.counts.entry(ticket.user().to_vec()).or_default() += 1;
        }
    }

    fn take(&mut self, name: &str) -> Option<Ticket> {
        let ticket = self.tickets.remove(name)?;
        if let Some(count) = self.counts.get_mut(ticket.user()) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(ticket.user());
            }
        }
        Some(ticket)
    }
}

impl Tickets {
    pub(super) const fn new() -> Tickets {
        Tickets(Mutex::new(Unused { tickets: BTreeMap::new(), counts: BTreeMap::new() }))
    }

    /// Issues a ticket; returns `None` if the user has too many, or the system returns no random numbers.
    pub(super) fn issue(&self, credentials: Option<Credentials>, now: Instant) -> Option<String> {
        let name = random_name().ok()?;
        let user = user_of(credentials.as_ref()).to_vec();
        let mut unused = self.0.lock();
        if unused.count_of(&user) >= TICKETS_MAX {
            unused.forget_old(now);
        }
        if unused.count_of(&user) >= TICKETS_MAX {
            return None;
        }
        unused.tickets.insert(name.clone(), Ticket { until: now + GOOD_FOR, credentials });
        *unused.counts.entry(user).or_default() += 1;
        Some(name)
    }

    /// Invalidates a ticket and returns its credentials; `None` if the ticket does not exist or has expired.
    pub(super) fn redeem(&self, name: &str, now: Instant) -> Option<Option<Credentials>> {
        let Ticket { until, credentials } = self.0.lock().take(name)?;
        (until > now).then_some(credentials)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_valid_once_and_expires() {
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
        assert_eq!(tickets.0.lock().tickets.len(), 1);
    }

    #[test]
    fn a_user_with_many_tickets_does_not_use_up_those_of_others() {
        let tickets = Tickets::new();
        let now = Instant::now();
        let of = |user: &str| Some(Credentials { user: user.into(), password: b"x".to_vec() });
        let mut last = None;
        while let Some(ticket) = tickets.issue(of("alice"), now) {
            last = Some(ticket);
        }
        assert!(tickets.issue(of("bob"), now).is_some() && tickets.issue(None, now).is_some());
        // After a ticket was used, another can be issued.
        assert!(tickets.redeem(&last.unwrap(), now).is_some());
        assert!(tickets.issue(of("alice"), now).is_some() && tickets.issue(of("alice"), now).is_none());
    }
}
