//! The addresses on which the server listens, and changes of them at run time.
//!
//! The accepting worker owns the listeners. This module holds weak references, so that a change of the addresses does
//! not close listeners whose address remains, and the connections in their queues are not refused. Changes are
//! serialized by the lock of the configuration.

use std::sync::{Arc, Weak};

use ember_config::{BindAddress, Config};
use parking_lot::Mutex;

use super::listener::{Address, Listener};

/// Weak references to the TCP listeners, which the accepting worker owns.
pub(crate) struct Listening(Mutex<Vec<Weak<Listener>>>);

impl Listening {
    /// Creates the list from these listeners.
    pub(crate) fn new(listeners: &[Arc<Listener>]) -> Listening {
        Listening(Mutex::new(weak(listeners)))
    }

    /// Listens on exactly the addresses of `config`; returns the listeners for the accepting worker.
    ///
    /// # Errors
    /// Returns a message if the change is not possible; the addresses are unchanged then.
    pub(crate) fn change(&self, config: &Config) -> Result<Vec<Arc<Listener>>, String> {
        let mut known = self.0.lock();
        let current: Vec<Arc<Listener>> = known.iter().filter_map(Weak::upgrade).collect();
        let wanted = Listener::addresses(config)?;
        let is_wanted = |listener: &Arc<Listener>| {
            listener.address().is_some_and(|address| wanted.iter().any(|(wanted, _)| *wanted == address))
        };
        let (kept, left): (Vec<_>, Vec<_>) = current.into_iter().partition(is_wanted);
        let missing = wanted
            .into_iter()
            .filter(|(address, _)| !kept.iter().any(|listener| listener.address() == Some(*address)))
            .collect::<Vec<_>>();
        let opened = open(&missing, config).or_else(|_| {
            // Listeners that are about to be closed may occupy a newly configured address: a listener on all addresses
            // occupies each of them.
            left.iter().for_each(|listener| listener.suspend());
            open(&missing, config).inspect_err(|_| {
                for listener in &left {
                    if let Err(error) = listener.resume(config) {
                        tracing::error!("cannot listen on the previous address again: {error}");
                    }
                }
            })
        })?;
        left.iter().for_each(|listener| listener.suspend());
        let listeners = [kept, opened].concat();
        *known = weak(&listeners);
        Ok(listeners)
    }
}

fn weak(listeners: &[Arc<Listener>]) -> Vec<Weak<Listener>> {
    listeners.iter().filter(|listener| listener.address().is_some()).map(Arc::downgrade).collect()
}

/// Listens on all of these addresses, except for optional ones that are not available.
pub(super) fn open(
    addresses: &[(Address, BindAddress)],
    config: &Config,
) -> Result<Vec<Arc<Listener>>, String> {
    let mut listeners = Vec::new();
    for (address, bind) in addresses {
        match Listener::open(*address, config) {
            Ok(listener) => listeners.push(Arc::new(listener)),
            Err(error) if bind.tolerates(&error) => {
                tracing::info!("not listening on {}: {error}", bind.host);
            }
            Err(error) => {
                return Err(format!(
                    "Failed listening on port {} of {}: {error}",
                    address.socket.port(),
                    bind.host,
                ));
            }
        }
    }
    Ok(listeners)
}
