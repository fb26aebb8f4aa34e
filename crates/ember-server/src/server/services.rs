//! Services above [`Server`](super::Server) with their own state, found by type, so that a new service needs no field.

use std::any::Any;

/// The services of a server. There are few services, and commands do not look them up.
#[derive(Default)]
pub(crate) struct Services(Vec<Box<dyn Any + Send + Sync>>);

impl Services {
    /// Adds a service at startup.
    #[must_use]
    pub(crate) fn with<S: Any + Send + Sync>(mut self, service: S) -> Services {
        self.0.push(Box::new(service));
        self
    }

    /// Returns the service of type `S`. O(services).
    ///
    /// # Panics
    /// Panics if no service of this type was added at startup.
    pub(crate) fn get<S: Any>(&self) -> &S {
        self.0.iter().find_map(|service| service.downcast_ref()).expect("all services are added at the start")
    }
}
