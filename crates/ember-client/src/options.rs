//! What programs for servers take on the command line: which server, and how the connection is made secret.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

/// Which server, and as whom.
#[derive(Debug, Args)]
#[command(next_help_heading = "Server")]
pub struct ServerOptions {
    /// The server's name or address.
    #[arg(short = 'h', value_name = "HOST", default_value = "127.0.0.1")]
    pub host: String,
    /// The server's port.
    #[arg(short = 'p', value_name = "PORT", default_value_t = 6379)]
    pub port: u16,
    /// The server's unix socket; instead of host and port.
    #[arg(short = 's', value_name = "SOCKET")]
    pub socket: Option<PathBuf>,
    /// All of it as redis://[[USER]:PASSWORD@][HOST][:PORT][/DATABASE]; rediss:// for TLS.
    #[arg(short = 'u', value_name = "URI")]
    pub uri: Option<String>,
    /// The password. The environment variable EMBERCLI_AUTH is safer: others cannot see it.
    #[arg(short = 'a', long = "pass", value_name = "PASSWORD", allow_hyphen_values = true)]
    pub password: Option<OsString>,
    /// The user's name; needs a password.
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    pub user: Option<OsString>,
    /// Ask for the password.
    #[arg(long)]
    pub askpass: bool,
    /// No warning for a password on the command line.
    #[arg(long)]
    pub no_auth_warning: bool,
}

/// How a connection is made secret.
#[derive(Debug, Args)]
#[command(next_help_heading = "TLS")]
pub struct TlsOptions {
    /// Connect with TLS.
    #[arg(long)]
    pub tls: bool,
    /// The name that the server's certificate has to have, and that is sent to the server.
    #[arg(long, value_name = "HOST")]
    pub sni: Option<String>,
    /// Certificates of authorities to trust; without it those of the system.
    #[arg(long, value_name = "FILE")]
    pub cacert: Option<PathBuf>,
    /// A directory with such certificates: its files that end in .pem, .crt or .0 to .9.
    #[arg(long, value_name = "DIRECTORY", conflicts_with = "cacert")]
    pub cacertdir: Option<PathBuf>,
    /// Trust every server. Whoever is between can read and change everything.
    #[arg(long)]
    pub insecure: bool,
    /// The client's certificate.
    #[arg(long, value_name = "FILE", requires = "key")]
    pub cert: Option<PathBuf>,
    /// The key of the client's certificate.
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
}
