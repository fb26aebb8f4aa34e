//! Command-line options for programs that connect to servers: the server, and TLS.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

/// The server and the user.
#[derive(Debug, Args)]
#[command(next_help_heading = "Server")]
pub struct ServerOptions {
    /// Server host name or address.
    #[arg(short = 'h', value_name = "HOST", default_value = "127.0.0.1")]
    pub host: String,
    /// Server port.
    #[arg(short = 'p', value_name = "PORT", default_value_t = 6379)]
    pub port: u16,
    /// Server unix socket, instead of host and port.
    #[arg(short = 's', value_name = "SOCKET")]
    pub socket: Option<PathBuf>,
    /// Server as a URI: redis://[[USER]:PASSWORD@][HOST][:PORT][/DATABASE]; rediss:// for TLS.
    #[arg(short = 'u', value_name = "URI")]
    pub uri: Option<String>,
    /// Password. Other users may see it on the command line; prefer the environment variable EMBERCLI_AUTH.
    #[arg(short = 'a', long = "pass", value_name = "PASSWORD", allow_hyphen_values = true)]
    pub password: Option<OsString>,
    /// User name; requires a password.
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    pub user: Option<OsString>,
    /// Prompt for the password.
    #[arg(long)]
    pub askpass: bool,
    /// Do not warn about a password on the command line.
    #[arg(long)]
    pub no_auth_warning: bool,
}

/// TLS options.
#[derive(Debug, Args)]
#[command(next_help_heading = "TLS")]
pub struct TlsOptions {
    /// Connect with TLS.
    #[arg(long)]
    pub tls: bool,
    /// Server name for SNI, which the server's certificate must contain.
    #[arg(long, value_name = "HOST")]
    pub sni: Option<String>,
    /// File with trusted CA certificates. Default: those of the system.
    #[arg(long, value_name = "FILE")]
    pub cacert: Option<PathBuf>,
    /// Directory with trusted CA certificates: its files ending in .pem, .crt or .0 to .9.
    #[arg(long, value_name = "DIRECTORY", conflicts_with = "cacert")]
    pub cacertdir: Option<PathBuf>,
    /// Accept any server certificate. Attackers on the network can then read and change all data.
    #[arg(long)]
    pub insecure: bool,
    /// Client certificate file.
    #[arg(long, value_name = "FILE", requires = "key")]
    pub cert: Option<PathBuf>,
    /// Key file of the client certificate.
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
}
