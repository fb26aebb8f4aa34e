//! The server's address and the credentials, determined from the options, the environment and a URI.

use std::ffi::OsString;
use std::io;
use std::net::IpAddr;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use percent_encoding::percent_decode;

use crate::options::{ServerOptions, TlsOptions};
use crate::tls::TlsSettings;

/// Environment variables for the password, in order of precedence.
const PASSWORD_VARIABLES: [&str; 2] = ["EMBERCLI_AUTH", "REDISCLI_AUTH"];

const WARNING: &str =
    "Warning: Using a password with '-a' or '-u' option on the command line interface may not be safe.";

/// The TCP port or unix socket on which a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A TCP port.
    Tcp {
        /// The host name or IP address.
        host: String,
        /// The port.
        port: u16,
    },
    /// A unix socket.
    Unix(PathBuf),
}

/// A user's name, if not the default one, and password.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The user name; `None` for the default user.
    pub user: Option<Vec<u8>>,
    /// The password.
    pub password: Vec<u8>,
}

impl Credentials {
    /// Returns the command that authenticates with these credentials.
    pub fn command(&self) -> Vec<&[u8]> {
        let mut words: Vec<&[u8]> = vec![b"AUTH"];
        words.extend(self.user.as_deref());
        words.push(&self.password);
        words
    }
}

/// Everything that is needed to connect to a server.
#[derive(Clone)]
pub struct Address {
    /// The TCP port or unix socket of the server.
    pub place: Place,
    /// The TLS settings, if TLS is used.
    pub tls: Option<TlsSettings>,
    /// The credentials, if any.
    pub credentials: Option<Credentials>,
    /// The number of the database.
    pub database: u32,
}

impl Address {
    /// Builds the address from the options. Warns about a password on the command line, where other users can see it.
    ///
    /// # Errors
    /// Returns a message if the URI is invalid, or the password cannot be read.
    pub fn of(options: &ServerOptions, tls: &TlsOptions, database: Option<u32>) -> Result<Address, String> {
        let uri = options.uri.as_deref().map(Uri::parse).transpose()?.unwrap_or_default();
        let place = match &options.socket {
            Some(path) => Place::Unix(path.clone()),
            None => Place::Tcp {
                host: uri.host.clone().unwrap_or_else(|| options.host.clone()),
                port: uri.port.unwrap_or(options.port),
            },
        };
        let is_tls = tls.tls || uri.is_tls;
        Ok(Address {
            place,
            tls: is_tls.then(|| TlsSettings::of(tls)),
            credentials: credentials(options, &uri)?,
            database: uri.database.or(database).unwrap_or(0),
        })
    }

    /// Formats the address for a prompt: `127.0.0.1:6379`, `[::1]:6379` or `redis /run/socket`.
    pub fn shown(&self) -> String {
        match &self.place {
            Place::Unix(path) => format!("redis {}", path.display()),
            Place::Tcp { host, port } if host.contains(':') => format!("[{host}]:{port}"),
            Place::Tcp { host, port } => format!("{host}:{port}"),
        }
    }

    /// Formats the address for connection errors.
    pub fn shown_in_errors(&self) -> String {
        match &self.place {
            Place::Unix(path) => path.display().to_string(),
            Place::Tcp { host, port } => format!("{host}:{port}"),
        }
    }

    /// Whether the server is on this machine, according to its address.
    pub fn is_local(&self) -> bool {
        match &self.place {
            Place::Unix(_) => true,
            Place::Tcp { host, .. } => {
                host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
            }
        }
    }
}

/// Reads the first line of standard input, without its line end, and no byte after it.
fn first_line() -> io::Result<String> {
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

fn credentials(options: &ServerOptions, uri: &Uri) -> Result<Option<Credentials>, String> {
    let user = uri.user.clone().or_else(|| options.user.clone().map(OsString::into_vec));
    let with = |password: Vec<u8>| Some(Credentials { user: user.clone(), password });
    if options.askpass {
        // Without a terminal, the password is read from standard input.
        let password = rpassword::prompt_password("Please input password: ").or_else(|_| first_line());
        return Ok(with(
            password.map_err(|error| format!("cannot read the password: {error}"))?.into_bytes(),
        ));
    }
    let written = uri.password.clone().or_else(|| options.password.clone().map(OsString::into_vec));
    let of_variable = |name| std::env::var_os(name).filter(|password| !password.is_empty());
    let from_environment = || PASSWORD_VARIABLES.into_iter().find_map(of_variable);
    match written {
        Some(password) => {
            if !options.no_auth_warning {
                eprintln!("{WARNING}");
            }
            Ok(with(password))
        }
        None => {
            let password = from_environment();
            if password.is_none() && user.is_some() {
                eprintln!("Warning: the user name is ignored without a password (--askpass, EMBERCLI_AUTH).");
            }
            Ok(password.and_then(|password| with(password.into_vec())))
        }
    }
}

/// `redis://[[user]:password@][host][:port][/database]`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Uri {
    is_tls: bool,
    user: Option<Vec<u8>>,
    password: Option<Vec<u8>>,
    host: Option<String>,
    port: Option<u16>,
    database: Option<u32>,
}

impl Uri {
    fn parse(text: &str) -> Result<Uri, String> {
        let (is_tls, rest) = match (text.strip_prefix("redis://"), text.strip_prefix("rediss://")) {
            (Some(rest), _) => (false, rest),
            (None, Some(rest)) => (true, rest),
            (None, None) => return Err("Invalid URI scheme".to_owned()),
        };
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let mut uri = Uri { is_tls, ..Uri::default() };
        let place = match authority.rsplit_once('@') {
            Some((login, place)) => {
                let (user, password) = login.split_once(':').unwrap_or(("", login));
                let decoded = |text: &str| percent_decode(text.as_bytes()).collect::<Vec<u8>>();
                uri.user = (!user.is_empty()).then(|| decoded(user));
                uri.password = Some(decoded(password));
                place
            }
            None => authority,
        };
        let (host, port) = match place.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, rest)) => (host, rest.strip_prefix(':').unwrap_or("")),
            None => place.split_once(':').unwrap_or((place, "")),
        };
        let number = |text: &str, what: &str| {
            text.parse::<u32>().map_err(|_| format!("Invalid URI: {text} is not a {what}"))
        };
        uri.host = (!host.is_empty()).then(|| host.to_owned());
        if !port.is_empty() {
            let number = number(port, "port")?;
            uri.port = Some(u16::try_from(number).map_err(|_| format!("Invalid URI: {port} is not a port"))?);
        }
        if !path.is_empty() {
            uri.database = Some(number(path, "database")?);
        }
        Ok(uri)
    }
}

impl TlsSettings {
    fn of(options: &TlsOptions) -> TlsSettings {
        TlsSettings {
            name: options.sni.clone(),
            authorities: options.cacert.clone(),
            directory: options.cacertdir.clone(),
            is_unchecked: options.insecure,
            identity: options.cert.clone().zip(options.key.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_contain_address_and_credentials() {
        let uri = Uri::parse("rediss://us%40er:p:w%20@example.com:6380/3").unwrap();
        assert!(uri.is_tls);
        assert_eq!((uri.user.unwrap(), uri.password.unwrap()), (b"us@er".to_vec(), b"p:w ".to_vec()));
        assert_eq!((uri.host.as_deref(), uri.port, uri.database), (Some("example.com"), Some(6380), Some(3)));
        let uri = Uri::parse("redis://:secret@[::1]").unwrap();
        assert_eq!((uri.user, uri.password), (None, Some(b"secret".to_vec())));
        assert_eq!((uri.host.as_deref(), uri.port), (Some("::1"), None));
        assert_eq!(Uri::parse("redis:///2").unwrap(), Uri { database: Some(2), ..Uri::default() });
        assert_eq!(Uri::parse("redis://").unwrap(), Uri::default());
    }

    #[test]
    fn invalid_uris_are_rejected() {
        for text in ["http://x", "redis", "redis://h:x", "redis://h:65536", "redis://h/a"] {
            assert!(Uri::parse(text).is_err(), "{text}");
        }
    }
}
