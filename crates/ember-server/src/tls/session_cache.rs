//! The cache of resumable TLS sessions, whose number and age the configuration limits.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustls::server::StoresServerSessions;

/// A cache of resumable sessions, shared by all workers.
pub(super) struct SessionCache {
    sessions_max: usize,
    timeout: Duration,
    sessions: Mutex<Sessions>,
}

#[derive(Default)]
struct Sessions {
    by_key: HashMap<Vec<u8>, (Instant, Vec<u8>)>,
    /// The keys in insertion order, including keys of sessions that were removed since; limited to the maximum number
    /// of sessions.
    order: VecDeque<(Instant, Vec<u8>)>,
}

impl SessionCache {
    /// Creates an empty cache for at most `sessions_max` sessions, which expire after `timeout`.
    pub(super) fn new(sessions_max: usize, timeout: Duration) -> SessionCache {
        SessionCache { sessions_max, timeout, sessions: Mutex::new(Sessions::default()) }
    }

    fn put_at(&self, now: Instant, key: Vec<u8>, value: Vec<u8>) {
        let mut sessions = self.sessions.lock();
        let Sessions { by_key, order } = &mut *sessions;
        order.push_back((now, key.clone()));
        by_key.insert(key, (now, value));
        while let Some((at, _)) = order.front()
            && (order.len() > self.sessions_max || now.duration_since(*at) > self.timeout)
            && let Some((at, key)) = order.pop_front()
        {
            // If a session was inserted again under the same key, a newer entry for it follows in the order.
            if by_key.get(&key).is_some_and(|(put_at, _)| *put_at == at) {
                by_key.remove(&key);
            }
        }
    }

    fn get_at(&self, now: Instant, key: &[u8]) -> Option<Vec<u8>> {
        let sessions = self.sessions.lock();
        let (at, value) = sessions.by_key.get(key)?;
        (now.duration_since(*at) <= self.timeout).then(|| value.clone())
    }

    fn take_at(&self, now: Instant, key: &[u8]) -> Option<Vec<u8>> {
        let (at, value) = self.sessions.lock().by_key.remove(key)?;
        (now.duration_since(at) <= self.timeout).then_some(value)
    }
}

impl fmt::Debug for SessionCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionCache")
    }
}

impl StoresServerSessions for SessionCache {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        self.put_at(Instant::now(), key, value);
        true
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.get_at(Instant::now(), key)
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.take_at(Instant::now(), key)
    }

    fn can_cache(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_sessions_are_evicted() {
        let (cache, now) = (SessionCache::new(2, Duration::from_secs(300)), Instant::now());
        for key in [b"a", b"b", b"a", b"c"] {
            cache.put_at(now, key.to_vec(), key.to_vec());
        }
        assert_eq!(cache.get_at(now, b"b"), None);
        assert_eq!(cache.get_at(now, b"c"), Some(b"c".to_vec()));
        for key in 0..100u8 {
            cache.put_at(now, vec![key], Vec::new());
            assert!(cache.take_at(now, &[key]).is_some());
        }
        let sessions = cache.sessions.lock();
        assert!(sessions.order.len() <= 2 && sessions.by_key.len() <= 2);
    }

    #[test]
    fn a_session_can_be_resumed_until_it_is_too_old() {
        let (cache, now) = (SessionCache::new(10, Duration::from_secs(300)), Instant::now());
        let later = |seconds| now + Duration::from_secs(seconds);
        cache.put_at(now, b"a".to_vec(), b"1".to_vec());
        assert_eq!(cache.get_at(later(300), b"a"), Some(b"1".to_vec()));
        assert_eq!(cache.get_at(later(301), b"a"), None);
        assert_eq!(cache.take_at(later(301), b"a"), None);
        cache.put_at(now, b"b".to_vec(), b"2".to_vec());
        assert_eq!(cache.take_at(now, b"b"), Some(b"2".to_vec()));
        assert_eq!(cache.take_at(now, b"b"), None, "a session can be taken once");
        cache.put_at(now, b"c".to_vec(), Vec::new());
        cache.put_at(later(301), b"d".to_vec(), Vec::new());
        assert_eq!(cache.sessions.lock().by_key.len(), 1, "new sessions replace expired ones");
    }
}
