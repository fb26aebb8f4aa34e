//! The control plane: a thread that serves HTTP on `metrics-port`, for monitoring and orchestration. A second thread
//! serves `http-watch-port`, so that many browsers on that port do not delay probes.
//!
//! These threads do not send requests to the workers. They only read shared state (counters with one writer, views of
//! clients, the shards under their locks, one at a time), so they delay a command at most by a walk over one shard's
//! observers.
//!
//! A client of this port can be slow, silent or hostile: [`places::PLACES_MAX`], [`HEADERS_WITHIN`],
//! [`ANSWERED_WITHIN`] and the limits on a request's head bound its cost. A connection serves one request. When no
//! place is free, an idle connection is closed in favour of the next ([`places`]).
//!
//! Workers run the commands of the dashboard ([`dashboard`]) and of streams ([`live`]) on connections that this thread
//! passes to them. An open stream occupies no place: it is counted as a client.

mod answer;
mod dashboard;
mod door;
mod live;
mod places;
mod readiness;
mod routes;
mod visitor;

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::{Domain, Socket, Type};
use tokio::net::TcpStream;

pub(crate) use dashboard::last_hour::LastHour;

use ember_config::{BindAddress, Config};

use crate::server::Server;
use answer::AnswerBody;
use places::{PLACES_MAX, Place, Places};
use visitor::Visitor;

/// The maximum number of connections that wait in the kernel to be accepted.
const BACKLOG: i32 = 64;

/// The maximum time for receiving the head of a request.
const HEADERS_WITHIN: Duration = Duration::from_secs(3);

/// The maximum time from accepting a connection to the end of its response.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);

/// The maximum size of a request's head in bytes; hyper accepts no lower limit.
const HEAD_BYTES_MAX: usize = 8192;

/// The maximum number of header fields of a request.
const HEADERS_MAX: usize = 32;

/// The pause after a failed accept, most likely for lack of file descriptors.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// One of the HTTP ports.
#[derive(Clone, Copy, Debug)]
enum Port {
    Metrics,
    Watch,
}

impl Port {
    /// Returns the parameter that sets the port's number.
    fn name(self) -> &'static str {
        match self {
            Port::Metrics => "metrics-port",
            Port::Watch => "http-watch-port",
        }
    }

    fn thread_name(self) -> &'static str {
        match self {
            Port::Metrics => "control-plane",
            Port::Watch => "http-watch",
        }
    }

    /// Opens the listening sockets of the port; none if its number is 0.
    fn listen(self, config: &Config) -> Result<Vec<TcpListener>, String> {
        let (port, addresses, list) = match self {
            Port::Metrics => (config.metrics_port, &config.metrics_bind, "metrics-bind"),
            Port::Watch => (config.http_watch_port, &config.http_watch_bind, "http-watch-bind"),
        };
        let mut sockets = Vec::new();
        if port != 0 {
            for bind in addresses {
                self.open(bind, port, &mut sockets)?;
            }
            if sockets.is_empty() {
                return Err(format!("{} needs an address in {list}", self.name()));
            }
        }
        Ok(sockets)
    }

    fn open(self, bind: &BindAddress, port: u16, sockets: &mut Vec<TcpListener>) -> Result<(), String> {
        let opened = bind
            .socket_addresses(port)
            .and_then(|addresses| addresses.into_iter().map(listen).collect::<io::Result<Vec<_>>>());
        match opened {
            Ok(opened) => sockets.extend(opened),
            Err(error) if bind.tolerates(&error) => {
                tracing::info!("{}: not listening on {}: {error}", self.name(), bind.host);
            }
            Err(error) => {
                return Err(format!("cannot listen on {} {} {port}: {error}", bind.host, self.name()));
            }
        }
        Ok(())
    }

    async fn answer(
        self,
        request: Request<Incoming>,
        visitor: Visitor,
        server: &'static Server,
    ) -> Response<AnswerBody> {
        if let Err(reason) = door::check_target(request.uri(), request.headers()) {
            return answer::whole(answer::plain(StatusCode::BAD_REQUEST, reason));
        }
        match self {
            Port::Metrics => routes::answer(request, visitor, server).await,
            Port::Watch => live::answer(request, visitor, server).await,
        }
    }
}

/// The listening sockets of all HTTP ports, before their threads run.
pub(crate) struct Sockets(Vec<(Port, Vec<TcpListener>)>);

impl Sockets {
    /// Listens on the addresses of each port that is not 0.
    ///
    /// # Errors
    /// Returns one line that names the address and its error.
    pub(crate) fn open(config: &Config) -> Result<Sockets, String> {
        let ports = [Port::Metrics, Port::Watch];
        ports.into_iter().map(|port| Ok((port, port.listen(config)?))).collect::<Result<_, _>>().map(Sockets)
    }

    /// Serves each port on its own thread until the process ends; starts no thread without sockets.
    ///
    /// # Errors
    /// Returns one line with the reason why a thread could not be started.
    pub(crate) fn serve(self, server: &'static Server) -> Result<(), String> {
        let Sockets(ports) = self;
        ports.into_iter().filter(|(_, sockets)| !sockets.is_empty()).try_for_each(|(port, sockets)| {
            serve(port, sockets, server).map_err(|error| format!("cannot serve {}: {error}", port.name()))
        })
    }
}

fn serve(port: Port, sockets: Vec<TcpListener>, server: &'static Server) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .thread_name(format!("{}-work", port.thread_name()))
        .max_blocking_threads(PLACES_MAX)
        .build()?;
    let run = move || {
        let places = Arc::new(Places::default());
        runtime.block_on(async {
            if let Port::Metrics = port {
                tokio::spawn(dashboard::last_hour::keep(server));
            }
            let mut accepting = Vec::new();
            for socket in sockets {
                match tokio::net::TcpListener::from_std(socket) {
                    Ok(listener) => {
                        accepting.push(tokio::spawn(accept(port, listener, Arc::clone(&places), server)));
                    }
                    Err(error) => tracing::error!("cannot monitor a socket of {}: {error}", port.name()),
                }
            }
            for task in accepting {
                // A task ends only by a panic, which ends the process unless panics are unwound.
                if task.await.is_err() {
                    tracing::error!("{} is no longer served, because of a bug", port.name());
                }
            }
        });
    };
    thread::Builder::new().name(port.thread_name().to_owned()).spawn(run).map(drop)
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

/// Accepts connections, and waits for a place for each.
async fn accept(port: Port, listener: tokio::net::TcpListener, places: Arc<Places>, server: &'static Server) {
    loop {
        match listener.accept().await {
            Ok((stream, remote)) => {
                let place = places.take(remote.ip()).await;
                let number = place.number();
                let task = tokio::spawn(async move {
                    match stream.local_addr() {
                        Ok(local) => answer(port, stream, Visitor { remote, local }, place, server).await,
                        Err(error) => {
                            tracing::debug!("{}: a connection was closed immediately: {error}", port.name())
                        }
                    }
                });
                places.set_task(number, task.abort_handle());
            }
            Err(error) => {
                tracing::debug!("{}: cannot accept a connection: {error}", port.name());
                tokio::time::sleep(ACCEPT_AGAIN).await;
            }
        }
    }
}

/// Serves one connection until it ends or reaches its time limit. A stream has no time limit.
async fn answer(port: Port, stream: TcpStream, visitor: Visitor, place: Place, server: &'static Server) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEADERS_WITHIN)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .keep_alive(false);
    let is_stream = AtomicBool::new(false);
    let service = service_fn(|request| {
        place.record_request();
        async {
            let response = port.answer(request, visitor, server).await;
            if response.body().is_stream() {
                is_stream.store(true, Ordering::Relaxed);
                place.give_back();
            }
            Ok::<_, Infallible>(response)
        }
    });
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
    let ended = match tokio::time::timeout(ANSWERED_WITHIN, connection.as_mut()).await {
        Err(_) if is_stream.load(Ordering::Relaxed) => connection.await,
        Err(_) => return tracing::debug!("{}: a client was too slow", port.name()),
        Ok(ended) => ended,
    };
    if let Err(error) = ended {
        tracing::debug!("{}: {error}", port.name());
    }
}
