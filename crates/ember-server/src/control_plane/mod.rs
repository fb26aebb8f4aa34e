//! The control plane: a thread of its own that answers HTTP on `metrics-port`, for monitoring and orchestration.
//!
//! Workers know nothing of it. It reads what they share (counters with one writer, views of clients, the shards behind
//! their locks, one at a time), and so never holds up a command by more than a walk over one shard's observers.
//!
//! A client of this port can be slow, silent or hostile: [`places::PLACES_MAX`], [`HEADERS_WITHIN`], [`ANSWERED_WITHIN`]
//! and the bounds of a request's head say what it can cost. A connection serves one request, and one that is idle makes
//! room for the next when there is none ([`places`]).
//!
//! Commands of the dashboard are run by workers, for a connection that this thread gives them ([`dashboard`]).

mod dashboard;
mod places;
mod routes;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::{Domain, Socket, Type};
use tokio::net::TcpStream;

pub(crate) use dashboard::history::History;

use crate::clients::client::Peer;
use crate::config::{BindAddress, Config};
use crate::server::Server;
use places::{PLACES_MAX, Place, Places};

/// Connections that wait to be accepted at most, in the kernel.
const BACKLOG: i32 = 64;

/// The time a client has to send the head of its request.
const HEADERS_WITHIN: Duration = Duration::from_secs(3);

/// The time from a connection's begin to the end of its answer.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);

/// The most bytes of a request's head; the least that hyper can be told.
const HEAD_BYTES_MAX: usize = 8192;

/// The most fields of a request's head.
const HEADERS_MAX: usize = 32;

/// After this time accepting is tried again when it failed, for lack of descriptors most likely.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// The listening sockets, before there is a thread.
pub(crate) struct Sockets(Vec<TcpListener>);

impl Sockets {
    /// Listens on the addresses of `metrics-bind`, if `metrics-port` is not 0.
    ///
    /// # Errors
    /// One line that names the address and what is wrong with it.
    pub(crate) fn open(config: &Config) -> Result<Sockets, String> {
        let mut sockets = Vec::new();
        if config.metrics_port != 0 {
            for bind in &config.metrics_bind {
                open(bind, config.metrics_port, &mut sockets)?;
            }
            if sockets.is_empty() {
                return Err("metrics-port needs an address in metrics-bind".to_owned());
            }
        }
        Ok(Sockets(sockets))
    }

    /// Answers on them until the process ends, on a thread of its own; does nothing if there are none.
    ///
    /// # Errors
    /// One line that says why there is no such thread.
    pub(crate) fn serve(self, server: &'static Server) -> Result<(), String> {
        let Sockets(sockets) = self;
        if sockets.is_empty() {
            return Ok(());
        }
        let wrong = |error: io::Error| format!("cannot start the control plane: {error}");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .thread_name("control-plane-work")
            .max_blocking_threads(PLACES_MAX)
            .build()
            .map_err(wrong)?;
        let run = move || {
            let places = Arc::new(Places::default());
            runtime.block_on(async {
                tokio::spawn(dashboard::history::keep(server));
                let mut accepting = Vec::new();
                for socket in sockets {
                    match tokio::net::TcpListener::from_std(socket) {
                        Ok(listener) => {
                            accepting.push(tokio::spawn(accept(listener, Arc::clone(&places), server)));
                        }
                        Err(error) => tracing::error!("cannot watch a socket of metrics-port: {error}"),
                    }
                }
                for task in accepting {
                    // A task ends by a panic only, which ends the process where it is not unwound.
                    if task.await.is_err() {
                        tracing::error!("metrics-port is not served any more: a bug ended it");
                    }
                }
            });
        };
        thread::Builder::new().name("control-plane".to_owned()).spawn(run).map(drop).map_err(wrong)
    }
}

fn open(bind: &BindAddress, port: u16, sockets: &mut Vec<TcpListener>) -> Result<(), String> {
    let opened = bind
        .socket_addresses(port)
        .and_then(|addresses| addresses.into_iter().map(listen).collect::<io::Result<Vec<_>>>());
    match opened {
        Ok(opened) => sockets.extend(opened),
        Err(error) if bind.tolerates(&error) => {
            tracing::info!("metrics-port: not listening on {}: {error}", bind.host);
        }
        Err(error) => return Err(format!("cannot listen on {} metrics-port {port}: {error}", bind.host)),
    }
    Ok(())
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// Accepts connections and finds places for them.
async fn accept(listener: tokio::net::TcpListener, places: Arc<Places>, server: &'static Server) {
    loop {
        match listener.accept().await {
            Ok((stream, remote)) => {
                let place = places.take(remote.ip()).await;
                let number = place.number();
                let task = tokio::spawn(async move {
                    match stream.local_addr() {
                        Ok(local) => answer(stream, Visitor { remote, local }, place, server).await,
                        Err(error) => tracing::debug!("metrics-port: a connection broke at once: {error}"),
                    }
                });
                places.set_task(number, task.abort_handle());
            }
            Err(error) => {
                tracing::debug!("metrics-port: cannot accept a connection: {error}");
                tokio::time::sleep(ACCEPT_AGAIN).await;
            }
        }
    }
}

/// The two ends of a connection.
#[derive(Clone, Copy, Debug)]
struct Visitor {
    remote: SocketAddr,
    local: SocketAddr,
}

impl Visitor {
    /// What its commands' connection is to show.
    fn into_peer(self) -> Peer {
        Peer::Http { remote: self.remote, local: self.local }
    }
}

/// Serves one connection to its end, or to the end of its time.
async fn answer(stream: TcpStream, visitor: Visitor, place: Place, server: &'static Server) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEADERS_WITHIN)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .keep_alive(false);
    let service = service_fn(|request| {
        place.note_request();
        routes::answer(request, visitor, server)
    });
    let connection = http.serve_connection(TokioIo::new(stream), service);
    match tokio::time::timeout(ANSWERED_WITHIN, connection).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!("metrics-port: {error}"),
        Err(_) => tracing::debug!("metrics-port: a client took too long"),
    }
}
