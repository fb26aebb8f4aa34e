//! The process title in `ps`, which Linux reads from the location of the command line in the process's memory.
//!
//! The title can be as long as the command line was, because the environment follows in memory and is still in use.
//! Words at the end of a longer title are omitted.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::LazyLock;

use ember_config::Config;

/// The field of `/proc/self/stat`, counted after the process name, with the start address of the command line.
const BEGIN_FIELD: usize = 45;

/// The field with the end address of the command line, counted in the same way.
const END_FIELD: usize = 46;

/// Sets the title of the process, if enabled.
///
/// # Errors
/// Returns the error of the system, which may lack `/proc`.
pub(crate) fn set(config: &Config, file: Option<&Path>) -> io::Result<()> {
    /// The name with which the program was started. It is stored, because the title overwrites the arguments.
    static NAME: LazyLock<String> = LazyLock::new(|| {
        let name = std::env::args_os().next().unwrap_or_default();
        name.to_string_lossy().into_owned()
    });
    if !config.set_proc_title || !cfg!(target_os = "linux") {
        return Ok(());
    }
    let file = file.map(|path| path.display().to_string()).unwrap_or_default();
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
    let address = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    let (begin, end) = (address(BEGIN_FIELD), address(END_FIELD));
    let capacity = usize::try_from(end.saturating_sub(begin)).unwrap_or(0);
    if begin == 0 || capacity == 0 {
        return Err(io::Error::other("the system does not report the address of the command line"));
    }
    let mut bytes = fitting(&title(config, &NAME, &file), capacity - 1).as_bytes().to_vec();
    bytes.resize(capacity, 0);
    OpenOptions::new().write(true).open("/proc/self/mem")?.write_all_at(&bytes, begin)
}

/// Returns as many leading words of `text` as fit into `capacity` bytes.
fn fitting(text: &str, capacity: usize) -> &str {
    let mut rest = text;
    while rest.len() > capacity {
        rest = rest.rsplit_once(' ').map_or("", |(before, _)| before).trim_end();
    }
    rest
}

/// Expands the title template. The configuration has checked that each opening brace is closed or doubled.
fn title(config: &Config, name: &str, file: &str) -> String {
    let (mut title, mut rest) = (String::new(), config.proc_title_template.as_str());
    while let Some((before, after)) = rest.split_once('{') {
        title.push_str(before);
        rest = match (after.strip_prefix('{'), after.split_once('}')) {
            (Some(next), _) => {
                title.push('{');
                next
            }
            (None, Some((variable, next))) => {
                title.push_str(&value(config, variable, name, file));
                next
            }
            (None, None) => after,
        };
    }
    title.push_str(rest);
    title.trim_end().to_owned()
}

fn value(config: &Config, variable: &str, name: &str, file: &str) -> String {
    match variable {
        "title" => name.to_owned(),
        "listen-addr" => listen_address(config),
        "port" => config.port.to_string(),
        "tls-port" => config.tls_port.to_string(),
        "unixsocket" => config.unixsocket.clone(),
        "config-file" => file.to_owned(),
        // `server-mode` is empty, because the server is not a cluster node.
        _ => String::new(),
    }
}

/// Returns the first address with the port, or the path of the Unix socket if there is no port.
fn listen_address(config: &Config) -> String {
    let port = if config.port == 0 { config.tls_port } else { config.port };
    if port == 0 {
        return config.unixsocket.clone();
    }
    let address = config.bind.first().map_or("*", |address| address.host.as_str());
    format!("{address}:{port}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_filled_in() {
        let of = |template: &str, config: Config| {
            title(&Config { proc_title_template: template.to_owned(), ..config }, "ember-server", "/x.conf")
        };
        let plain = Config::default;
        let socket = Config { port: 0, unixsocket: "/s".to_owned(), ..plain() };
        for (template, config, expected) in [
            ("{title} {listen-addr} {server-mode}", plain(), "ember-server 127.0.0.1:6379"),
            ("{{a {port}/{tls-port} {config-file}", plain(), "{a 6379/0 /x.conf"),
            ("{listen-addr}", socket.clone(), "/s"),
            ("{listen-addr} {unixsocket} {port}", Config { tls_port: 7, ..socket }, "127.0.0.1:7 /s 0"),
        ] {
            assert_eq!(of(template, config), expected);
        }
    }

    #[test]
    fn words_that_do_not_fit_are_omitted() {
        for (capacity, expected) in
            [(27, "ember 127.0.0.1:6379"), (19, "ember"), (5, "ember"), (4, ""), (0, "")]
        {
            assert_eq!(fitting("ember 127.0.0.1:6379", capacity), expected);
        }
    }
}
